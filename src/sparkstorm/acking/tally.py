"""An acker task in a batch: merge all contributions, and report each root's fate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.acking.ids import U64, digest, seeds
from sparkstorm.acking.lineage import Indexes
from sparkstorm.acking.shares import Entries

__all__ = [
    "HeldRoots",
    "RootIndex",
    "RootRange",
    "Tally",
    "TallyResult",
    "locate",
    "merge_ranges",
]

_FEW = 4
"""So many ranges are sooner compared one by one than searched for each root."""


@final
@dataclass(frozen=True, slots=True, order=True)
class RootRange:
    """Consecutive roots that begin in a batch: ``count`` roots from ``first`` on."""

    first: int
    count: int


def merge_ranges(ranges: Iterable[RootRange]) -> tuple[RootRange, ...]:
    """Return sorted ranges of the same roots; no two touch or overlap.

    >>> merge_ranges([RootRange(5, 1), RootRange(1, 4), RootRange(3, 1), RootRange(9, 2)])
    (RootRange(first=1, count=5), RootRange(first=9, count=2))
    """
    merged: list[list[int]] = []
    for span in sorted(ranges):
        end = span.first + span.count
        if merged and span.first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([span.first, end])
    return tuple(RootRange(first, end - first) for first, end in merged)


def locate(ranges: Sequence[RootRange], roots: U64) -> Indexes:
    """Return the number of each root's range among sorted ranges, -1 outside all of them."""
    return RootIndex(ranges).locate(roots) if ranges else np.full(len(roots), -1, np.int64)


@final
class RootIndex:
    """Numbers the roots of disjoint ranges from 0: all roots, or a single acker's.

    Args:
        ranges: the ranges, in any order.
        acker: the acker whose roots get numbers.
        ackers: the number of ackers; a root belongs to acker root mod ackers.
    """

    def __init__(self, ranges: Iterable[RootRange], acker: int = 0, ackers: int = 1) -> None:
        # All ackers and the driver number the same ranges, so the order must not depend on the
        # sender.
        pairs = sorted((span.first, span.count) for span in ranges)
        spans = np.array(pairs, np.uint64).reshape(-1, 2)
        self._number(spans[:, 0], spans[:, 0] + spans[:, 1], acker, ackers)

    def _number(self, firsts: U64, ends: U64, acker: int, ackers: int) -> None:
        self._firsts, self._ends, self._step = firsts, ends, ackers
        # The distance from each range's first root to the acker's first root in the range.
        own = (np.uint64(acker + ackers) - firsts % np.uint64(ackers)) % np.uint64(ackers)
        self._offsets = own.astype(np.int64)
        left = (ends - firsts).astype(np.int64) - self._offsets
        self._counts = np.maximum(0, -(-left // ackers))
        self._starts = np.cumsum(self._counts) - self._counts

    def of_acker(self, acker: int, ackers: int) -> "RootIndex":
        """Return the index of a single acker's roots of the same ranges."""
        index = RootIndex(())
        index._number(self._firsts, self._ends, acker, ackers)
        return index

    def __len__(self) -> int:
        return int(self._counts.sum())

    @property
    def digest(self) -> int:
        """A single number for the ranges, the same for every acker."""
        bounds = np.concatenate([self._firsts, self._ends])
        return digest(bounds, np.ones(len(bounds), np.bool_))

    def locate(self, roots: U64) -> Indexes:
        """Return the number of each root's range, -1 outside all of them."""
        if len(self._firsts) > _FEW:
            which = np.searchsorted(self._firsts, roots, side="right").astype(np.int64) - 1
            return np.where((which >= 0) & (roots < self._ends[which]), which, -1)
        which = np.full(len(roots), -1, np.int64)
        for number, (first, end) in enumerate(zip(self._firsts, self._ends, strict=True)):
            which[roots - first < end - first] = number  # below the first the difference wraps
        return which

    def slots(self, roots: U64) -> Indexes:
        """Return the number of each root, -1 outside all ranges."""
        which = self.locate(roots)
        if not len(self._firsts):
            return which
        within = (roots - self._firsts[which]) // np.uint64(self._step)
        return np.where(which >= 0, self._starts[which] + within.astype(np.int64), -1)

    def roots(self) -> U64:
        """Return all roots, in the order of their numbers."""
        own = self._firsts + self._offsets.astype(np.uint64)
        steps = np.arange(len(self)) - np.repeat(self._starts, self._counts)
        roots: U64 = np.repeat(own, self._counts) + (steps * self._step).astype(np.uint64)
        return roots

    def places(self) -> Indexes:
        """Return the number of each of the acker's roots among the roots of all ackers."""
        sizes = (self._ends - self._firsts).astype(np.int64)
        own = np.cumsum(sizes) - sizes + self._offsets
        steps = np.arange(len(self)) - np.repeat(self._starts, self._counts)
        places: Indexes = np.repeat(own, self._counts) + steps * self._step
        return places


@final
@dataclass(frozen=True, slots=True)
class HeldRoots:
    """Roots with held tuples: pairs of a root and the task that holds a tuple."""

    roots: U64
    holders: NDArray[np.int32]

    @classmethod
    def none(cls) -> "HeldRoots":
        """Return no pairs."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int32))

    @classmethod
    def concat(cls, parts: Sequence["HeldRoots"]) -> "HeldRoots":
        """Join parts end to end."""
        parts = [cls.none(), *parts]
        return cls(
            np.concatenate([part.roots for part in parts]),
            np.concatenate([part.holders for part in parts]),
        )

    def select(self, chosen: NDArray[Any]) -> "HeldRoots":
        """Return some of the pairs, by marks or positions."""
        return HeldRoots(self.roots[chosen], self.holders[chosen])

    def __len__(self) -> int:
        return len(self.roots)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TallyResult:
    """The fate of an acker's roots after a batch. A root found nowhere in here is lost.

    Attributes:
        acker: the acker's number.
        ranges: the digest of the batch's ranges.
        complete: marks for the acker's roots that began in the batch, in the order of
            :class:`RootIndex`.
        open_roots: roots that a bolt still holds.
        open_vals: the ack vals of the open roots.
        late: contributions to roots of earlier batches.
        resets: roots whose time-out starts anew.
        failed: failed roots, with their failures.
        held: the tasks that hold tuples, with the roots of these tuples.
    """

    acker: int
    ranges: int
    complete: NDArray[np.bool_]
    open_roots: U64
    open_vals: U64
    late: Entries
    resets: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    failed: FailedRoots = field(default_factory=FailedRoots.none)
    held: HeldRoots = field(default_factory=HeldRoots.none)


@final
class Tally:
    """The ack vals of an acker's roots of a batch.

    XOR commutes, so contributions may arrive in any order and in any pieces.

    Args:
        ranges: the roots that begin in the batch.
        acker: the number of this acker.
        ackers: the number of ackers.
        excluded: merged ranges of roots that the batch runs without. A stage that finished before
            the exclusion may still report a held tuple of such a root; the tally ignores the
            report, so the root is lost.
    """

    def __init__(
        self,
        ranges: Iterable[RootRange],
        acker: int,
        ackers: int,
        *,
        excluded: Sequence[RootRange] = (),
    ) -> None:
        self._excluded = RootIndex(excluded)
        self._acker = acker
        self._index = RootIndex(ranges, acker, ackers)
        self._vals = seeds(self._index.roots())
        self._causes = Causes()
        self._failed: list[FailedRoots] = []
        self._held: list[HeldRoots] = []
        self._resets: list[U64] = []
        self._late: list[Entries] = []

    def add(self, entries: Entries) -> None:
        """XOR the deltas into the ack vals of their roots."""
        slots = self._index.slots(entries.roots)
        mine = slots >= 0
        # A root may occur several times; plain fancy indexing would keep the last delta alone.
        np.bitwise_xor.at(self._vals, slots[mine], entries.deltas[mine])
        # A root that began in another batch: only the ledger has its ack val.
        if not mine.all():
            self._late.append(Entries(entries.roots[~mine], entries.deltas[~mine]))

    def hold(self, roots: U64, holder: int = 0) -> None:
        """Mark roots as held by a bolt's task."""
        self._held.append(HeldRoots(roots, np.full(len(roots), holder, np.int32)))

    def reset_timeout(self, roots: U64) -> None:
        """Pass on that the time-out of these roots starts anew."""
        self._resets.append(roots)

    def fail(self, failed: FailedRoots) -> None:
        """Mark roots as failed. The first failure of a root counts, whatever the ack val."""
        self._failed.append(failed.changed(self._causes.share))

    def result(self) -> TallyResult:
        """Return the sums. Call once, after all contributions."""
        failed = FailedRoots.merge(self._failed)
        complete = self._vals == 0
        slots = self._index.slots(failed.roots)
        # A failure beats the ack val: runs of a repeated stage may differ.
        complete[slots[slots >= 0]] = False
        held = HeldRoots.concat(self._held)
        roots, vals = self._open_ones(np.unique(held.roots), failed.roots)
        return TallyResult(
            acker=self._acker,
            ranges=self._index.digest,
            complete=complete,
            open_roots=roots,
            open_vals=vals,
            late=_concat(self._late),
            resets=np.unique(np.concatenate([np.empty(0, np.uint64), *self._resets])),
            failed=failed,
            held=held,
        )

    def _open_ones(self, held: U64, failed: U64) -> tuple[U64, U64]:
        slots = self._index.slots(held)
        wanted = (slots >= 0) & (self._excluded.locate(held) < 0)
        held, slots = held[wanted], slots[wanted]
        vals = self._vals[slots]
        is_open = (vals != 0) & ~np.isin(held, failed)
        return held[is_open], vals[is_open]


def _concat(parts: list[Entries]) -> Entries:
    if not parts:
        return Entries.none()
    return Entries(
        np.concatenate([part.roots for part in parts]),
        np.concatenate([part.deltas for part in parts]),
    )
