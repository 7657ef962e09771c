"""The roots that stayed open after their batch: one sorted table, 17 bytes each."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.expiry import Buckets
from sparkstorm.acking.ids import U64
from sparkstorm.acking.shares import Entries

__all__ = ["OpenRoots"]


@final
class OpenRoots:
    """Open roots, ascending, each with its ack val and bucket.

    One table for all batches, not one for each: whatever comes in is looked up by one search,
    however many batches have left roots open.
    """

    __slots__ = ("_vals", "buckets", "roots")

    def __init__(self) -> None:
        self.roots: U64 = np.empty(0, np.uint64)
        self.buckets: Buckets = np.empty(0, np.uint8)
        self._vals: U64 = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self.roots)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.roots.nbytes + self._vals.nbytes + self.buckets.nbytes

    def has(self, roots: U64) -> NDArray[np.bool_]:
        """Which of these roots are open."""
        return self._slots(roots)[1]

    def insert(self, roots: U64, vals: U64, bucket: np.uint8) -> None:
        """Add roots, in any order, that are not there yet."""
        order = np.argsort(roots, kind="stable")
        roots = roots[order]
        places = np.searchsorted(self.roots, roots)
        self.roots = np.insert(self.roots, places, roots)
        self._vals = np.insert(self._vals, places, vals[order])
        self.buckets = np.insert(self.buckets, places, bucket)

    def touch(self, roots: U64, bucket: np.uint8) -> None:
        """Put those of the roots that are open into a bucket."""
        slots, found = self._slots(roots)
        self.buckets[slots[found]] = bucket

    def add(self, entries: Entries) -> U64:
        """XOR deltas into the ack vals of those that are open; remove and return the complete."""
        slots, found = self._slots(entries.roots)
        slots = slots[found]
        np.bitwise_xor.at(self._vals, slots, entries.deltas[found])
        return self.remove(np.unique(slots[self._vals[slots] == 0]))

    def remove_roots(self, roots: U64) -> U64:
        """Remove those of the roots, ascending, that are open; return them."""
        slots, found = self._slots(roots)
        return self.remove(slots[found])

    def remove(self, slots: NDArray[np.int64] | NDArray[np.bool_]) -> U64:
        """Remove the roots at these slots, ascending or marked; return them."""
        removed: U64 = self.roots[slots]
        if len(removed):
            self.roots = np.delete(self.roots, slots)
            self._vals = np.delete(self._vals, slots)
            self.buckets = np.delete(self.buckets, slots)
        return removed

    def _slots(self, roots: U64) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where each root would stand, and whether it does."""
        slots = np.searchsorted(self.roots, roots)
        found = np.zeros(len(roots), np.bool_)
        inside = slots < len(self.roots)
        found[inside] = self.roots[slots[inside]] == roots[inside]
        return slots, found
