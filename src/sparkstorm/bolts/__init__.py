"""The bolts that come with sparkstorm: joins, windows, and bulk writers.

``join_bolt.py`` joins streams by key. ``window_bolt.py`` runs windows over its input;
``windowing.py`` is the arithmetic of windows. ``bulk_writer.py`` writes many tuples in one go.
"""

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
