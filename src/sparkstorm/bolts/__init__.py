"""Bolts that come with sparkstorm: joins, and windows over their input."""

from sparkstorm.bolts.join_bolt import JoinBolt
from sparkstorm.bolts.window_bolt import Window, WindowBolt
from sparkstorm.bolts.windowing import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

__all__ = [
    "CountWindow",
    "JoinBolt",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "Window",
    "WindowBolt",
]
