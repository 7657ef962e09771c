"""A running topology that is none: its driver's answers are made up, for tests of their readers."""

from sparkstorm.testing.control.fake import FakeControl, FakeRegistry

__all__ = ["FakeControl", "FakeRegistry"]
