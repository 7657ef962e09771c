"""Bolts that come with sparkstorm: joins, windows over their input, and bulk writers."""

from sparkstorm.bolts.bulk_writer import BulkWriterBolt, HoldingBulkWriterBolt
from sparkstorm.bolts.join_bolt import JoinBolt
from sparkstorm.bolts.window_bolt import Window, WindowBolt
from sparkstorm.bolts.windowing import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

__all__ = [
    "BulkWriterBolt",
    "CountWindow",
    "HoldingBulkWriterBolt",
    "JoinBolt",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "Window",
    "WindowBolt",
]
