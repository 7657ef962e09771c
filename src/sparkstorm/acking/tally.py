"""One acker task in one batch: merge what came in, and say how each of its roots stands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64, seeds
from sparkstorm.acking.shares import Entries
from sparkstorm.verdicts import Failure

__all__ = ["RootRange", "Tally", "TallyResult", "locate", "merge_ranges"]


@final
@dataclass(frozen=True, slots=True, order=True)
class RootRange:
    """Roots that begin in a batch: ``count`` of them from ``first`` on."""

    first: int
    count: int

    def owned_by(self, acker: int, ackers: int) -> "tuple[int, int]":
        """Return (offset of the first root of this acker, how many it has): root mod ackers."""
        offset = (acker - self.first) % ackers
        return offset, max(0, -(-(self.count - offset) // ackers))


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


def locate(ranges: Sequence[RootRange], roots: U64) -> NDArray[np.int64]:
    """The number of the range (of sorted ones) that each root began in, -1 for none of them."""
    if not ranges:
        return np.full(len(roots), -1, np.int64)
    firsts = np.array([span.first for span in ranges], np.uint64)
    ends = np.array([span.first + span.count for span in ranges], np.uint64)
    which = np.searchsorted(firsts, roots, side="right").astype(np.int64) - 1
    return np.where((which >= 0) & (roots < ends[which]), which, -1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TallyResult:
    """How the roots of one acker stand after a batch.

    ``complete`` has one array per range of the batch, with one mark for each root of this acker in
    that range. ``open_roots``/``open_vals`` are those that a bolt still holds, with their ack
    vals. ``late`` are contributions to roots that began in an earlier batch. What is in none of
    these, nor in ``failed``, is lost. ``resets`` are roots whose time-out starts anew. ``holders``
    are the tasks that said they hold any.
    """

    acker: int
    complete: tuple[NDArray[np.bool_], ...]
    open_roots: U64
    open_vals: U64
    late: Entries
    resets: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    failed: Mapping[int, Failure] = field(default_factory=dict)
    holders: frozenset[int] = frozenset()


@final
class Tally:
    """The ack vals of one acker's roots of one batch, an array per range.

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
        self._ranges = sorted(ranges)
        self._excluded = excluded
        self._acker = acker
        self._ackers = ackers
        self._vals = [_seeded(r, acker, ackers) for r in self._ranges]
        self._failed: dict[int, Failure] = {}
        self._open: list[U64] = []
        self._holders: set[int] = set()
        self._resets: list[U64] = []
        self._late: list[Entries] = []

    def add(self, entries: Entries) -> None:
        """XOR the deltas into the ack vals of their roots."""
        which = locate(self._ranges, entries.roots)
        for number in _occurring(which):
            chosen = which == number
            roots, deltas = entries.roots[chosen], entries.deltas[chosen]
            if number < 0:
                self._late.append(Entries(roots, deltas))
            else:
                np.bitwise_xor.at(self._vals[number], self._slots(number, roots), deltas)

    def hold(self, roots: U64, holder: int = 0) -> None:
        """Mark roots of which a bolt's task still holds a tuple."""
        self._open.append(roots)
        self._holders.add(holder)

    def reset_timeout(self, roots: U64) -> None:
        """Pass on that the time-out of these roots starts anew."""
        self._resets.append(roots)

    def fail(self, root: int, count: int, failure: Failure) -> None:
        """Mark consecutive roots as failed; the first reason stays. It beats any ack val."""
        for one in range(root + (self._acker - root) % self._ackers, root + count, self._ackers):
            self._failed.setdefault(one, failure)

    def result(self) -> TallyResult:
        """Sum up. To be called once, when everything is in."""
        failed = np.array(sorted(self._failed), np.uint64)
        began = locate(self._ranges, failed)
        complete = []
        for number, vals in enumerate(self._vals):
            done = vals == 0
            done[self._slots(number, failed[began == number])] = False
            complete.append(done)
        roots, vals = self._open_ones(failed)
        late = [entries for entries in self._late if len(entries)]
        return TallyResult(
            acker=self._acker,
            complete=tuple(complete),
            open_roots=roots,
            open_vals=vals,
            late=_concat(late),
            resets=np.unique(np.concatenate([np.empty(0, np.uint64), *self._resets])),
            failed=dict(self._failed),
            holders=frozenset(self._holders),
        )

    def _open_ones(self, failed: U64) -> tuple[U64, U64]:
        held = np.unique(np.concatenate(self._open)) if self._open else np.empty(0, np.uint64)
        held = held[~np.isin(held, failed) & (locate(self._excluded, held) < 0)]
        which = locate(self._ranges, held)
        roots, vals = [held[:0]], [held[:0]]
        for number in _occurring(which[which >= 0]):
            mine = held[which == number]
            mine_vals = self._vals[number][self._slots(number, mine)]
            roots.append(mine[mine_vals != 0])
            vals.append(mine_vals[mine_vals != 0])
        return np.concatenate(roots), np.concatenate(vals)

    def _slots(self, number: int, roots: U64) -> NDArray[np.int64]:
        first = self._ranges[number].first
        return ((roots - np.uint64(first)) // np.uint64(self._ackers)).astype(np.int64)


def _seeded(span: RootRange, acker: int, ackers: int) -> U64:
    offset, count = span.owned_by(acker, ackers)
    steps = np.arange(count, dtype=np.uint64) * np.uint64(ackers)
    return seeds(steps + np.uint64(span.first + offset))


def _occurring(which: NDArray[np.int64]) -> list[int]:
    """The numbers that there are, ascending; found by counting, since they are few and small."""
    found: list[int] = (np.flatnonzero(np.bincount(which + 1)) - 1).tolist()
    return found


def _concat(parts: list[Entries]) -> Entries:
    if not parts:
        return Entries.none()
    return Entries(
        np.concatenate([part.roots for part in parts]),
        np.concatenate([part.deltas for part in parts]),
    )
