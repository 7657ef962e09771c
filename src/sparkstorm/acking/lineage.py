"""Lineage: the roots of tuples, and the tuples' shares; arrays for many tuples at once."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64

__all__ = ["Indexes", "Lineage", "is_ascending"]

Indexes = NDArray[np.int64]
"""Positions in another array."""


@final
class Lineage:
    """The (root, share) pairs of ``n`` tuples, tuple by tuple.

    Nearly always each tuple has exactly one pair. Then ``offsets`` is None and tuple i has pair i.
    Otherwise tuple i has the pairs from ``offsets[i]`` to ``offsets[i + 1]``: several for a tuple
    with anchors of several roots, none for an untracked tuple. A grove (:mod:`groves`) may stand in
    the place of many roots.
    """

    __slots__ = ("offsets", "roots", "shares")

    def __init__(self, roots: U64, shares: U64, offsets: Indexes | None = None) -> None:
        self.roots = roots
        self.shares = shares
        self.offsets = offsets

    @classmethod
    def untracked(cls, count: int) -> "Lineage":
        """Return the lineage of tuples that belong to no root."""
        none = np.empty(0, np.uint64)
        return cls(none, none, np.zeros(count + 1, np.int64))

    @classmethod
    def concat(cls, parts: Sequence["Lineage"]) -> "Lineage":
        """Join lineages end to end."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.untracked(0)
        roots = np.concatenate([part.roots for part in parts])
        shares = np.concatenate([part.shares for part in parts])
        if all(part.offsets is None for part in parts):
            return cls(roots, shares)
        counts = np.concatenate([part.counts() for part in parts])
        return cls(roots, shares, _offsets(counts))

    def __len__(self) -> int:
        return len(self.roots) if self.offsets is None else len(self.offsets) - 1

    @property
    def is_simple(self) -> bool:
        """Whether each tuple has exactly one root."""
        return self.offsets is None

    @property
    def is_tracked(self) -> bool:
        """Whether any tuple has a root."""
        return len(self.roots) > 0

    def counts(self) -> Indexes:
        """Return the number of roots of each tuple."""
        if self.offsets is None:
            return np.ones(len(self.roots), np.int64)
        return np.diff(self.offsets)

    def owners(self) -> Indexes:
        """Return the tuple of each pair."""
        if self.offsets is None:
            return np.arange(len(self.roots))
        return np.repeat(np.arange(len(self)), self.counts())

    def pairs_at(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the roots of one tuple, and its share of each."""
        if self.offsets is None:
            return (int(self.roots[index]),), (int(self.shares[index]),)
        start, stop = int(self.offsets[index]), int(self.offsets[index + 1])
        return tuple(self.roots[start:stop].tolist()), tuple(self.shares[start:stop].tolist())

    def slice(self, start: int, stop: int) -> "Lineage":
        """Return the lineage of the tuples from ``start`` up to ``stop``."""
        if self.offsets is None:
            return Lineage(self.roots[start:stop], self.shares[start:stop])
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - first
        return Lineage(self.roots[first:last], self.shares[first:last], offsets).simplified()

    def take(self, tuples: Indexes) -> "Lineage":
        """Return the lineage of the tuples at these positions."""
        if self.offsets is None:
            return Lineage(self.roots[tuples], self.shares[tuples])
        pairs = self.pairs_of(tuples)[1]
        offsets = _offsets(self.counts()[tuples])
        return Lineage(self.roots[pairs], self.shares[pairs], offsets).simplified()

    def simplified(self) -> "Lineage":
        """Return the same lineage without offsets if every tuple has exactly one root."""
        if self.offsets is None or len(self.roots) != len(self):
            return self
        # As many pairs as tuples may still be two for one tuple and none for another.
        if not np.array_equal(self.offsets, np.arange(len(self) + 1)):
            return self
        return Lineage(self.roots, self.shares)

    def pairs_of(self, tuples: Indexes) -> tuple[Indexes, Indexes]:
        """For tuples (in any order, repeats allowed) return (position in ``tuples``, pair)."""
        if self.offsets is None:
            return np.arange(len(tuples)), tuples
        counts = self.counts()[tuples]
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
        return np.repeat(np.arange(len(tuples)), counts), within + np.repeat(
            self.offsets[:-1][tuples], counts
        )


def _offsets(counts: Indexes) -> Indexes:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def is_ascending(numbers: Indexes | U64) -> bool:
    """Whether each number is larger than the number before, so that none repeats."""
    return bool(np.all(numbers[1:] > numbers[:-1]))
