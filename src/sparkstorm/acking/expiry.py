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
    time-out since it has two buckets; here there are ten). The numbers of buckets repeat, so
    whoever keeps them must hand them to :meth:`aged` after each rotation.
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

    def rotate(self, now: float) -> int:
        """Move on to the bucket of this moment; returns by how many."""
        tick = max(self.tick, int((now - self._start) / self._period))
        turned, self.tick = tick - self.tick, tick
        return turned

    def aged(self, buckets: Buckets, turned: int) -> Buckets:
        """Number buckets anew after a rotation, so that what has expired looks so for ever."""
        before = (np.int64(self.tick - turned) - buckets.astype(np.int64)) % _NUMBERS
        age = np.minimum(before + turned, self.slots + 1)
        renumbered: Buckets = ((self.tick - age) % _NUMBERS).astype(np.uint8)
        return renumbered

    def expired(self, buckets: Buckets) -> NDArray[np.bool_]:
        """Which of these have expired."""
        age = (np.int64(self.tick) - buckets.astype(np.int64)) % _NUMBERS
        return age > self.slots
