"""The stopwatch: times calls of ``execute``, cheap ones in groups."""

from time import perf_counter

__all__ = ["Stopwatch"]

_LARGEST_GROUP = 64
"""The most calls that are timed together; more would cost no less that counts."""

_GROUP_SECS = 3e-5
"""How long a group shall take: a reading and its part of a histogram cost a hundredth of it."""


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
        if not calls:
            return 1
        return max(1, min(_LARGEST_GROUP, int(calls * _GROUP_SECS / max(secs, 1e-9))))
