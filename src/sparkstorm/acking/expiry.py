"""Time-outs by rotating buckets: no timer per message, one byte each."""

from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Buckets", "RotatingBuckets"]

Buckets = NDArray[np.uint8]
"""For each pending root the number of the bucket that it lies in."""

_NUMBERS = 256


@final
class RotatingBuckets:
    """Numbers buckets by time; what lies in a bucket of ``slots`` rotations ago has expired.

    A root put into the newest bucket expires between ``timeout`` and
    ``timeout * (1 + 1 / slots)`` later (Storm's RotatingMap, whose bound is up to twice the
    time-out since it has two buckets; here there are ten).
    """

    __slots__ = ("_period", "_start", "slots", "tick")

    def __init__(self, timeout: float, now: float, slots: int = 10) -> None:
        self._period = timeout / slots
        self._start = now
        self.slots = slots
        self.tick = 0

    @property
    def newest(self) -> np.uint8:
        """The bucket for what is put in now."""
        return np.uint8(self.tick % _NUMBERS)

    def rotate(self, now: float) -> bool:
        """Move on to the bucket of this moment; returns whether anything may have expired."""
        tick = int((now - self._start) / self._period)
        moved = tick > self.tick
        self.tick = max(tick, self.tick)
        return moved

    def expired(self, buckets: Buckets) -> NDArray[np.bool_]:
        """Which of these have expired. Must be asked at least once in 200 rotations."""
        age = (np.int64(self.tick) - buckets.astype(np.int64)) % _NUMBERS
        return age > self.slots
