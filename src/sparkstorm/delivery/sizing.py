"""How many messages the next batch should hold, so that it takes about the wanted time."""

import math
from typing import final

__all__ = ["BatchSizer"]

_GROWTH = 4.0
_SMOOTHING = 0.5
_FIXED_SHARE = 0.2
"""A batch much faster than this share of the target says nothing of the rate: grow."""


@final
class BatchSizer:
    """Adapts the batch size to a target time; pure but for the rate that it remembers.

    >>> sizer = BatchSizer(target_secs=1.0)
    >>> sizer.limit
    1000
    >>> sizer.observe(messages=1000, secs=0.1)
    >>> sizer.limit
    4000
    """

    def __init__(
        self, target_secs: float, minimum: int = 1_000, maximum: int | None = None
    ) -> None:
        self._target = target_secs
        self._most = math.inf if maximum is None else float(maximum)
        self._least = min(float(minimum), self._most)
        self._size = self._least

    @property
    def limit(self) -> int:
        """How many messages the next batch may hold."""
        return max(1, int(self._size))

    def observe(self, *, messages: int, secs: float) -> None:
        """Learn from a batch; one that was not full cannot shrink the size much."""
        if not messages or secs <= 0:
            return
        wanted = messages * self._target / secs
        if messages < self.limit // 2 and wanted < self._size:
            return
        bounded = min(wanted, self._size * _GROWTH)
        if secs < _FIXED_SHARE * self._target:
            bounded = self._size * _GROWTH if messages >= self.limit // 2 else self._size
        smooth = _SMOOTHING if bounded < self._size * 2 else 0.0
        size = smooth * self._size + (1 - smooth) * bounded
        self._size = min(self._most, max(self._least, size))
