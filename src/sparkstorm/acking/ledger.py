"""The ledger: which roots are pending, in the driver, between batches.

Roots are dense, so nothing is kept for each message while its batch runs: the batch's ranges are
enough. Most trees begin and end inside one batch. For those that stay open after it, because a
bolt holds a tuple, a :class:`_Window` per range holds 13 bytes each: offset, ack val, bucket. A
window shrinks as its roots end, so one old root pins nothing but itself.

Life of a root, and what may happen to it (anything else changes nothing)::

    planned ──settle: complete──► acked
       │  ╲──settle: failed, lost──► failed
       ╰────settle: open──► open ──late val 0──► acked
                             ╰──late failure, expiry──► failed

A root that has ended is in no window, so it can never end twice and late contributions to it fall
away (rule 10 of the acker).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.expiry import Buckets, RotatingBuckets
from sparkstorm.acking.ids import U64
from sparkstorm.acking.tally import RootRange, TallyResult, locate
from sparkstorm.errors import InternalError
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Ledger", "Verdicts"]

_LOST = Failure(
    reason=Reason.LOST,
    message="a tuple of its tree was lost with a process, or its bolts are not deterministic",
)


@final
@dataclass(frozen=True, slots=True)
class Verdicts:
    """Roots that ended: ``acked`` sorted, ``failed`` with the reason."""

    acked: U64
    failed: Mapping[int, Failure] = field(default_factory=dict)


@final
class Ledger:
    """All pending roots of a topology; not thread-safe, takes the time as an argument.

    A root's time begins when its batch has ended: how long that took is no fault of a tree that
    waits for a later one, and a batch has a time limit of its own.

    Args:
        timeout: seconds until an open root expires; None for never.
        now: the time of the clock whose times the other methods get.
        on_progress: count from the last contribution to a root, not from its batch.
    """

    def __init__(self, timeout: float | None, now: float, *, on_progress: bool = False) -> None:
        self._buckets = RotatingBuckets(timeout if timeout is not None else 1.0, now)
        self._expires = timeout is not None
        self._on_progress = on_progress
        self._due = False
        self._planned: set[RootRange] = set()
        self._windows: dict[int, _Window] = {}

    def begin(self, ranges: Iterable[RootRange]) -> None:
        """Note the roots of a batch that was planned."""
        self._planned.update(ranges)

    def settle(
        self, ranges: Sequence[RootRange], results: Sequence[TallyResult], now: float
    ) -> Verdicts:
        """Take in the results of all ackers for a committed batch; return what ended by it.

        Raises:
            InternalError: an acker's result is missing or not of these ranges, or the ranges were
                settled before or never planned; nothing was changed.
        """
        spans = sorted(ranges)
        self._check(spans, results)
        self._rotate(now)
        failed = {root: why for result in results for root, why in result.failed.items()}
        late_acked, late_failed = self._late(results, failed)
        acked = [self._settle_range(n, span, results, failed) for n, span in enumerate(spans)]
        for result in results:
            self.reset_timeout(result.resets, now)
        roots = np.array(list(failed), np.uint64)
        began = roots[locate(spans, roots) >= 0]
        known = {root: failed[root] for root in began.tolist()}
        return Verdicts(np.sort(np.concatenate([late_acked, *acked])), {**known, **late_failed})

    def drop(self, ranges: Iterable[RootRange], failure: Failure) -> Verdicts:
        """Fail all roots of planned ranges whose batch brought nothing."""
        failed: dict[int, Failure] = {}
        for span in ranges:
            if span in self._planned:
                self._planned.remove(span)
                failed.update((span.first + i, failure) for i in range(span.count))
        return Verdicts(np.empty(0, np.uint64), failed)

    def reset_timeout(self, roots: U64, now: float) -> None:
        """Start the time-out of open roots anew."""
        self._rotate(now)
        for window, mine in self._by_window(np.unique(roots)):
            window.touch(mine, self._buckets.newest)

    def expire(self, now: float) -> Verdicts:
        """Fail the open roots whose time is over."""
        self._rotate(now)
        failed: dict[int, Failure] = {}
        if self._due and self._expires:
            for window in self._windows.values():
                roots = window.remove(self._buckets.expired(window.buckets))
                failed.update((int(root), _TIMED_OUT) for root in roots)
            self._forget_empty()
        self._due = False
        return Verdicts(np.empty(0, np.uint64), failed)

    @property
    def pending(self) -> int:
        """How many roots have not ended."""
        return sum(span.count for span in self._planned) + self.open

    @property
    def open(self) -> int:
        """How many roots stayed open after their batch."""
        return sum(len(window) for window in self._windows.values())

    def open_roots(self) -> U64:
        """The roots that stayed open after their batch, sorted."""
        parts = [window.roots() for _, window in sorted(self._windows.items())]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    @property
    def nbytes(self) -> int:
        """Bytes held for pending roots, the arrays' own."""
        return sum(window.nbytes for window in self._windows.values())

    def __repr__(self) -> str:
        return f"Ledger(pending={self.pending}, open={self.open}, windows={len(self._windows)})"

    def _rotate(self, now: float) -> None:
        turned = self._buckets.rotate(now)
        if turned:
            self._due = True
            for window in self._windows.values():
                window.buckets = self._buckets.aged(window.buckets, turned)

    def _check(self, spans: Sequence[RootRange], results: Sequence[TallyResult]) -> None:
        """Refuse what does not fit together, before anything is changed."""
        ackers = len(results)
        if sorted(result.acker for result in results) != list(range(ackers)):
            raise InternalError("the results of some ackers are missing")
        for result in results:
            sizes = [span.owned_by(result.acker, ackers)[1] for span in spans]
            if sizes != [len(marks) for marks in result.complete]:
                raise InternalError(f"the result of acker {result.acker} is of other roots")
        if spans and not results:
            raise InternalError("no acker has a result")
        for span, after in zip(spans, [*spans[1:], None], strict=False):
            if span == after or span not in self._planned:
                raise InternalError(f"roots from {span.first} were settled twice, or never planned")

    def _settle_range(
        self,
        number: int,
        span: RootRange,
        results: Sequence[TallyResult],
        failed: dict[int, Failure],
    ) -> U64:
        self._planned.remove(span)
        done = np.zeros(span.count, np.bool_)
        for result in results:
            offset, _ = span.owned_by(result.acker, len(results))
            done[offset :: len(results)] = result.complete[number]
        opened = [_between(result, span) for result in results]
        roots = np.concatenate([roots for roots, _ in opened])
        vals = np.concatenate([vals for _, vals in opened])
        self._find_lost(span, done, roots, failed)
        if len(roots):
            self._windows[span.first] = _Window(span.first, roots, vals, self._buckets.newest)
            self._due = True
        return (np.flatnonzero(done) + span.first).astype(np.uint64)

    def _find_lost(
        self, span: RootRange, done: NDArray[np.bool_], opened: U64, failed: dict[int, Failure]
    ) -> None:
        accounted = done.copy()
        accounted[(opened - np.uint64(span.first)).astype(np.int64)] = True
        for offset in np.flatnonzero(~accounted):
            failed.setdefault(span.first + int(offset), _LOST)

    def _late(
        self, results: Sequence[TallyResult], failed: Mapping[int, Failure]
    ) -> tuple[U64, dict[int, Failure]]:
        """Contributions to roots of earlier batches; unknown roots have ended and fall away."""
        ended: dict[int, Failure] = {}
        for window, mine in self._by_window(np.array(sorted(failed), np.uint64)):
            window.remove(window.marks(mine))
            ended.update((int(root), failed[int(root)]) for root in mine)
        acked = [np.empty(0, np.uint64)]
        for result in results:
            order = np.argsort(result.late.roots, kind="stable")
            roots, deltas = result.late.roots[order], result.late.deltas[order]
            for window, mine in self._by_window(np.unique(roots)):
                chosen = np.isin(roots, mine)
                window.add(roots[chosen], deltas[chosen])
                if self._on_progress:
                    window.touch(mine, self._buckets.newest)
        acked += [window.remove(window.vals == 0) for window in self._windows.values()]
        self._forget_empty()
        return np.concatenate(acked), ended

    def _by_window(self, roots: U64) -> "list[tuple[_Window, U64]]":
        """Sort roots (ascending) to the windows that still hold them."""
        found = []
        for window in self._windows.values():
            mine = roots[np.isin(roots, window.roots())] if len(roots) else roots
            if len(mine):
                found.append((window, mine))
        return found

    def _forget_empty(self) -> None:
        self._windows = {first: w for first, w in self._windows.items() if len(w)}


_TIMED_OUT = Failure(
    reason=Reason.TIMEOUT,
    message="the tree was not complete in time: a bolt holds a tuple of it, or never acked it",
)


@final
class _Window:
    """The open roots of one range: offsets ascending, each with its ack val and bucket."""

    __slots__ = ("_first", "buckets", "offsets", "vals")

    def __init__(self, first: int, roots: U64, vals: U64, bucket: np.uint8) -> None:
        order = np.argsort(roots, kind="stable")
        self._first = first
        self.offsets = (roots[order] - np.uint64(first)).astype(np.uint32)
        self.vals = vals[order]
        self.buckets: Buckets = np.full(len(roots), bucket, np.uint8)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.vals.nbytes + self.buckets.nbytes

    def roots(self) -> U64:
        return self.offsets.astype(np.uint64) + np.uint64(self._first)

    def marks(self, roots: U64) -> NDArray[np.bool_]:
        return np.isin(self.roots(), roots)

    def add(self, roots: U64, deltas: U64) -> None:
        slots = np.searchsorted(self.offsets, (roots - np.uint64(self._first)).astype(np.uint32))
        np.bitwise_xor.at(self.vals, slots, deltas)

    def touch(self, roots: U64, bucket: np.uint8) -> None:
        self.buckets[self.marks(roots)] = bucket

    def remove(self, marks: NDArray[np.bool_]) -> U64:
        """Take the marked roots out and return them."""
        if not marks.any():
            return np.empty(0, np.uint64)
        roots = self.roots()[marks]
        keep = ~marks
        self.offsets, self.vals = self.offsets[keep], self.vals[keep]
        self.buckets = self.buckets[keep]
        return roots


def _between(result: TallyResult, span: RootRange) -> tuple[U64, U64]:
    inside = (result.open_roots >= np.uint64(span.first)) & (
        result.open_roots < np.uint64(span.first + span.count)
    )
    return result.open_roots[inside], result.open_vals[inside]
