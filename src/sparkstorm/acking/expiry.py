"""Time-outs by rotating buckets: no timer per message, one byte each."""

from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Buckets", "RotatingBuckets"]

Buckets = NDArray[np.uint8]
"""For each pending root the number of its bucket."""

_NUMBERS = 256


@final
class RotatingBuckets:
    """Buckets numbered by time; a bucket expires after ``slots`` rotations.

    A root put into the newest bucket expires between ``timeout`` and ``timeout * (1 + 1 / slots)``
    later. (The bound of Storm's RotatingMap, which has two buckets, is twice the time-out.) The
    numbers of buckets repeat, so the keeper of an array of numbers must call :meth:`aged` after
    each rotation.
    """

    __slots__ = ("_period", "_start", "slots", "tick")

    def __init__(self, timeout: float, now: float, slots: int = 10) -> None:
        self._period = timeout / slots
        self._start = now
        self.slots = slots
        self.tick = 0

    @property
    def newest(self) -> np.uint8:
        """The bucket for roots put in now."""
        return np.uint8(self.tick % _NUMBERS)

    def rotate(self, now: float) -> int:
        """Move on to the bucket of this moment; return the number of turns."""
        tick = max(self.tick, int((now - self._start) / self._period))
        turned, self.tick = tick - self.tick, tick
        return turned

    def aged(self, buckets: Buckets, turned: int) -> Buckets:
        """Renumber buckets after a rotation, so that expired buckets look expired for ever."""
        before = (np.int64(self.tick - turned) - buckets.astype(np.int64)) % _NUMBERS
        # Without the cap an old bucket's number would come round and look new.
        age = np.minimum(before + turned, self.slots + 1)
        renumbered: Buckets = ((self.tick - age) % _NUMBERS).astype(np.uint8)
        return renumbered

    def expired(self, buckets: Buckets) -> NDArray[np.bool_]:
        """Mark the expired buckets."""
        age = (np.int64(self.tick) - buckets.astype(np.int64)) % _NUMBERS
        return age > self.slots
