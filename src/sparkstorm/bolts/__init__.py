"""Bolts that come with sparkstorm: windows over their input."""

from sparkstorm.bolts.window_bolt import Window, WindowBolt
from sparkstorm.bolts.windowing import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

__all__ = [
    "CountWindow",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "Window",
    "WindowBolt",
]
