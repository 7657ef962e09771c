"""One acker task in one batch: merge what came in, and say how each of its roots stands."""

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


@final
@dataclass(frozen=True, slots=True, order=True)
class RootRange:
    """Roots that begin in a batch: ``count`` of them from ``first`` on."""

    first: int
    count: int


def merge_ranges(ranges: Iterable[RootRange]) -> tuple[RootRange, ...]:
    """Return sorted ranges of the same roots, none of which touches or overlaps another.

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
    """The number of the range (of sorted ones) that each root began in, -1 for none of them."""
    return RootIndex(ranges).locate(roots) if ranges else np.full(len(roots), -1, np.int64)


@final
class RootIndex:
    """Numbers the roots of disjoint ranges from 0: all of them, or those of one acker.

    Args:
        ranges: the ranges, in any order.
        acker: whose roots are numbered.
        ackers: how many share the roots: root mod ackers.
    """

    def __init__(self, ranges: Iterable[RootRange], acker: int = 0, ackers: int = 1) -> None:
        pairs = sorted((span.first, span.count) for span in ranges)
        spans = np.array(pairs, np.uint64).reshape(-1, 2)
        self._number(spans[:, 0], spans[:, 0] + spans[:, 1], acker, ackers)

    def _number(self, firsts: U64, ends: U64, acker: int, ackers: int) -> None:
        self._firsts, self._ends, self._step = firsts, ends, ackers
        own = (np.uint64(acker + ackers) - firsts % np.uint64(ackers)) % np.uint64(ackers)
        self._offsets = own.astype(np.int64)
        left = (ends - firsts).astype(np.int64) - self._offsets
        self._counts = np.maximum(0, -(-left // ackers))
        self._starts = np.cumsum(self._counts) - self._counts

    def of_acker(self, acker: int, ackers: int) -> "RootIndex":
        """Return the index of one acker's roots of the same ranges."""
        index = RootIndex(())
        index._number(self._firsts, self._ends, acker, ackers)
        return index

    def __len__(self) -> int:
        return int(self._counts.sum())

    @property
    def digest(self) -> int:
        """One number for the ranges, the same for every acker."""
        bounds = np.concatenate([self._firsts, self._ends])
        return digest(bounds, np.ones(len(bounds), np.bool_))

    def locate(self, roots: U64) -> Indexes:
        """The number of the range that each root is in, -1 for none of them."""
        if not len(self._firsts):
            return np.full(len(roots), -1, np.int64)
        which = np.searchsorted(self._firsts, roots, side="right").astype(np.int64) - 1
        return np.where((which >= 0) & (roots < self._ends[which]), which, -1)

    def slots(self, roots: U64) -> Indexes:
        """The number of each root, -1 for those that are in none of the ranges."""
        which = self.locate(roots)
        if not len(self._firsts):
            return which
        within = (roots - self._firsts[which]) // np.uint64(self._step)
        return np.where(which >= 0, self._starts[which] + within.astype(np.int64), -1)

    def roots(self) -> U64:
        """All roots, in the order of their numbers."""
        own = self._firsts + self._offsets.astype(np.uint64)
        steps = np.arange(len(self)) - np.repeat(self._starts, self._counts)
        roots: U64 = np.repeat(own, self._counts) + (steps * self._step).astype(np.uint64)
        return roots

    def places(self) -> Indexes:
        """The number of each of the acker's roots among those of all ackers."""
        sizes = (self._ends - self._firsts).astype(np.int64)
        own = np.cumsum(sizes) - sizes + self._offsets
        steps = np.arange(len(self)) - np.repeat(self._starts, self._counts)
        places: Indexes = np.repeat(own, self._counts) + steps * self._step
        return places


@final
@dataclass(frozen=True, slots=True)
class HeldRoots:
    """Roots of which tasks hold tuples: pairs of a root and a task."""

    roots: U64
    holders: NDArray[np.int32]

    @classmethod
    def none(cls) -> "HeldRoots":
        """No pairs."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int32))

    @classmethod
    def concat(cls, parts: Sequence["HeldRoots"]) -> "HeldRoots":
        """Put pairs one after the other."""
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
    """How the roots of one acker stand after a batch.

    ``complete`` has one mark for each root of this acker that began in the batch, in the order of
    :class:`RootIndex`; ``ranges`` is the digest of the ranges that these are in.
    ``open_roots``/``open_vals`` are those that a bolt still holds, with their ack
    vals. ``late`` are contributions to roots that began in an earlier batch. What is in none of
    these, nor in ``failed``, is lost. ``resets`` are roots whose time-out starts anew. ``held``
    tells which tasks said that they hold which roots.
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
    """The ack vals of one acker's roots of one batch.

    The order of what comes in does not matter, nor how it is cut into pieces: XOR commutes.

    Args:
        ranges: the roots that begin in the batch.
        acker: the number of this acker.
        ackers: how many there are.
        excluded: roots that the batch is run without, merged. Their tuples are left out, so a
            held tuple (a stage that had finished before tells of it) keeps none of them open:
            they are lost.
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
        np.bitwise_xor.at(self._vals, slots[mine], entries.deltas[mine])
        if not mine.all():
            self._late.append(Entries(entries.roots[~mine], entries.deltas[~mine]))

    def hold(self, roots: U64, holder: int = 0) -> None:
        """Mark roots of which a bolt's task still holds a tuple."""
        self._held.append(HeldRoots(roots, np.full(len(roots), holder, np.int32)))

    def reset_timeout(self, roots: U64) -> None:
        """Pass on that the time-out of these roots starts anew."""
        self._resets.append(roots)

    def fail(self, failed: FailedRoots) -> None:
        """Mark roots as failed; the first reason stays. It beats any ack val."""
        self._failed.append(failed.changed(self._causes.share))

    def result(self) -> TallyResult:
        """Sum up. To be called once, when everything is in."""
        failed = FailedRoots.merge(self._failed)
        complete = self._vals == 0
        slots = self._index.slots(failed.roots)
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
