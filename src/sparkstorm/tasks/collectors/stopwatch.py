"""The stopwatch: times calls of ``execute``, cheap ones in groups."""

from time import perf_counter

__all__ = ["Stopwatch"]

_GROUP = 16
"""How many cheap calls are timed together: to read the clock takes a fifth of such a call."""

_CHEAP_SECS = 5e-6
"""Calls that take longer are timed one by one."""


class Stopwatch:
    """Notes when which tuple's turn came; the loops around ``execute`` call it.

    The end of a call is the begin of the next, so one reading does for both.

    Attributes:
        marks: the position of the tuple whose turn came at each reading.
        times: the readings, as many as marks.
        is_on: whether anybody wants to know.
    """

    __slots__ = ("is_on", "marks", "times")

    def __init__(self, *, is_on: bool = False) -> None:
        self.is_on = is_on
        self.marks: list[int] = []
        self.times: list[float] = []

    def read(self, index: int) -> int:
        """Note that the turn of a tuple has come; return after how many tuples to read again.

        Returns 0, which no countdown reaches again, if nobody wants to know.
        """
        if not self.is_on:
            return 0
        now = perf_counter()
        calls, secs = 0, 0.0
        if self.marks:
            calls, secs = index - self.marks[-1], now - self.times[-1]
        self.marks.append(index)
        self.times.append(now)
        return _GROUP if calls and secs <= calls * _CHEAP_SECS else 1
