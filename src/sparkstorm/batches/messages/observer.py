"""Observers: hear of committed batches and of ended messages."""

from collections.abc import Mapping
from typing import Protocol

from sparkstorm.control.views import AttemptView
from sparkstorm.metrics import BatchTiming, TaskMetrics
from sparkstorm.sources.unfinished import Named

__all__ = ["Observer"]


class Observer(Protocol):
    """Hears what becomes of batches and messages, in the driver.

    All methods are called under the coordinator's lock, so none may wait for anything.
    """

    def batch_committed(self, timing: BatchTiming, messages: Mapping[str, int]) -> None:
        """Hear of a committed batch, with the number of its messages by spout."""
        ...

    def messages_ended(self, spout: str, counts: TaskMetrics) -> None:
        """Hear of all messages of a spout's task that have ended together."""
        ...

    def attempt_ended(self, named: Named, attempt: AttemptView) -> None:
        """Hear of an attempt that is kept: of a failed message, or of some of the good ones."""
        ...
