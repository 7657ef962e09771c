"""When the offsets of a partition came to be there, as far as a run has seen."""

from collections import deque
from typing import final

__all__ = ["Arrivals"]

_MOST = 512
"""Moments that are kept; beyond these every other one is forgotten."""


@final
class Arrivals:
    """Remembers when the end of a log was first seen where, for the age of a lag.

    >>> seen = Arrivals()
    >>> seen.note(10, now=0.0)
    >>> seen.note(30, now=5.0)
    >>> seen.age(point=7, now=6.0), seen.age(point=10, now=6.0), seen.age(point=30, now=6.0)
    (6.0, 1.0, 0.0)
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque()

    def note(self, end: int, now: float) -> None:
        """The log ends there now."""
        while self._seen and self._seen[-1][0] > end:  # it was cut
            self._seen.pop()
        if not self._seen or end > self._seen[-1][0]:
            self._seen.append((end, now))
            if len(self._seen) > _MOST:
                self._seen = deque(list(self._seen)[::2])

    def age(self, point: int, now: float) -> float:
        """Return for how long there has been something at ``point`` or behind; 0.0 if there is not.

        What lies before ``point`` is forgotten.
        """
        while self._seen and self._seen[0][0] <= point:
            self._seen.popleft()
        return now - self._seen[0][1] if self._seen else 0.0
