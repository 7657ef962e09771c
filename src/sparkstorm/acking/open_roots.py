"""The roots that stayed open after their batch: a single sorted table, 17 bytes per root."""

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

    A single table serves all batches, so a look-up is one search, however many batches left roots
    open.
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
        """The bytes of the arrays."""
        return self.roots.nbytes + self._vals.nbytes + self.buckets.nbytes

    def has(self, roots: U64) -> NDArray[np.bool_]:
        """Mark the roots that are open."""
        return self._slots(roots)[1]

    def insert(self, roots: U64, vals: U64, bucket: np.uint8) -> None:
        """Add new roots, in any order."""
        order = np.argsort(roots, kind="stable")
        roots = roots[order]
        places = np.searchsorted(self.roots, roots)
        self.roots = np.insert(self.roots, places, roots)
        self._vals = np.insert(self._vals, places, vals[order])
        self.buckets = np.insert(self.buckets, places, bucket)

    def touch(self, roots: U64, bucket: np.uint8) -> None:
        """Put the open roots among the given into a bucket."""
        slots, found = self._slots(roots)
        self.buckets[slots[found]] = bucket

    def add(self, entries: Entries) -> U64:
        """XOR deltas into the ack vals of open roots; remove and return the completed roots."""
        slots, found = self._slots(entries.roots)
        slots = slots[found]
        # A root may occur several times; plain fancy indexing would keep the last delta alone.
        np.bitwise_xor.at(self._vals, slots, entries.deltas[found])
        return self.remove(np.unique(slots[self._vals[slots] == 0]))

    def remove_roots(self, roots: U64) -> U64:
        """Remove the open roots among the given, which are ascending; return the removed."""
        slots, found = self._slots(roots)
        return self.remove(slots[found])

    def remove(self, slots: NDArray[np.int64] | NDArray[np.bool_]) -> U64:
        """Remove the roots at these slots (ascending positions, or marks); return the removed."""
        removed: U64 = self.roots[slots]
        if len(removed):
            self.roots = np.delete(self.roots, slots)
            self._vals = np.delete(self._vals, slots)
            self.buckets = np.delete(self.buckets, slots)
        return removed

    def _slots(self, roots: U64) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return each root's slot in the table, and marks of the roots that are there."""
        slots = np.searchsorted(self.roots, roots)
        found = np.zeros(len(roots), np.bool_)
        inside = slots < len(self.roots)
        found[inside] = self.roots[slots[inside]] == roots[inside]
        return slots, found
