"""The ledger: the pending roots of a topology, in the driver, between batches.

Roots are dense, so the ledger keeps no entry per message while a batch runs: the batch's ranges
suffice. Most trees begin and end inside a batch. Trees that stay open after their batch, because a
bolt holds a tuple, stand in a single sorted table (:class:`OpenRoots`). The table shrinks as trees
end, so an old root pins nothing but itself. The ledger joins all results of a batch before any
look-up, so the cost of a batch grows with its contents, not with the number of ackers, loads or
earlier batches.

Life of a root; every other event changes nothing::

    planned ──settle: complete──► acked
       │  ╲──settle: failed, lost──► failed
       ╰────settle: open──► open ──late val 0──► acked
                             ╰──late failure, expiry──► failed

An ended root is neither planned nor open, so no root ends twice, and the ledger drops late
contributions to ended roots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.expiry import RotatingBuckets
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.open_roots import OpenRoots
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootIndex, RootRange, TallyResult
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
    """Ended roots: ``acked`` sorted, ``failed`` with the reasons."""

    acked: U64
    failed: FailedRoots = field(default_factory=FailedRoots.none)


@final
class Ledger:
    """All pending roots of a topology; not thread-safe. Methods take the time as an argument.

    A root's time-out begins when the root's batch ends: a tree that waits for a later batch is not
    to blame for the length of its own, which has a time limit too.

    Args:
        timeout: seconds until an open root expires; None for never.
        now: the current time, on the clock of all other methods.
        on_progress: count from the last contribution to a root, not from the root's batch.
    """

    def __init__(self, timeout: float | None, now: float, *, on_progress: bool = False) -> None:
        self._buckets = RotatingBuckets(timeout if timeout is not None else 1.0, now)
        self._expires = timeout is not None
        self._on_progress = on_progress
        self._due = False
        self._planned: set[RootRange] = set()
        self._open = OpenRoots()

    def begin(self, ranges: Iterable[RootRange]) -> None:
        """Add the roots of a planned batch."""
        self._planned.update(ranges)

    def settle(
        self, ranges: Sequence[RootRange], results: Sequence[TallyResult], now: float
    ) -> Verdicts:
        """Add the results of all ackers for a committed batch; return the roots that ended.

        Raises:
            InternalError: an acker's result is missing or of other ranges, or the ranges were
                settled before or never planned. The ledger is unchanged.
        """
        index = RootIndex(ranges)
        complete = self._check(sorted(ranges), index, results)
        self._rotate(now)
        failed = FailedRoots.merge([result.failed for result in results])
        # Late failures come before late acks: a root that failed must not count as acked.
        late_failed = failed.select(np.isin(failed.roots, self._open.remove_roots(failed.roots)))
        late_acked = self._add_late(results)
        # From here on these roots are open or ended, so a second settlement is refused.
        self._planned.difference_update(ranges)
        # Failures of ended roots fall away here: they are in no range of this batch.
        began = failed.select(index.locate(failed.roots) >= 0)
        self._open_new(index, results)
        lost = self._lost(index, complete, results, began)
        resets = np.concatenate([_NONE, *(result.resets for result in results)])
        self._open.touch(resets, self._buckets.newest)
        acked = np.sort(np.concatenate([late_acked, index.roots()[complete]]))
        return Verdicts(acked, FailedRoots.merge([late_failed, began, lost]))

    def drop(self, ranges: Iterable[RootRange], failure: Failure) -> Verdicts:
        """Fail all roots of planned ranges whose batch had no result."""
        dropped = self._planned.intersection(ranges)
        self._planned -= dropped
        return Verdicts(_NONE, FailedRoots.alike(RootIndex(dropped).roots(), failure))

    def reset_timeout(self, roots: U64, now: float) -> None:
        """Start the time-out of open roots anew."""
        self._rotate(now)
        self._open.touch(roots, self._buckets.newest)

    def expire(self, now: float) -> Verdicts:
        """Fail the open roots that reached their time-out."""
        self._rotate(now)
        failed = FailedRoots.none()
        # Without a turn of the buckets, and without new roots, nothing can have expired.
        if self._due and self._expires:
            expired = self._open.remove(self._buckets.expired(self._open.buckets))
            failed = FailedRoots.alike(expired, _TIMED_OUT)
        self._due = False
        return Verdicts(_NONE, failed)

    def is_open(self, roots: U64) -> NDArray[np.bool_]:
        """Mark the roots that are open."""
        return self._open.has(roots)

    @property
    def pending(self) -> int:
        """The number of roots without a verdict."""
        return sum(span.count for span in self._planned) + self.open

    @property
    def open(self) -> int:
        """The number of roots that stayed open after their batch."""
        return len(self._open)

    def open_roots(self) -> U64:
        """Return the open roots, sorted."""
        return self._open.roots.copy()

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays of open roots."""
        return self._open.nbytes

    def __repr__(self) -> str:
        return f"Ledger(pending={self.pending}, open={self.open})"

    def _rotate(self, now: float) -> None:
        turned = self._buckets.rotate(now)
        if turned:
            self._due = True
            self._open.buckets = self._buckets.aged(self._open.buckets, turned)

    def _check(
        self, spans: Sequence[RootRange], index: RootIndex, results: Sequence[TallyResult]
    ) -> NDArray[np.bool_]:
        """Refuse results that do not fit together, before any change; return the complete roots."""
        ackers = len(results)
        if sorted(result.acker for result in results) != list(range(ackers)):
            raise InternalError("the results of some ackers are missing")
        complete, digest = np.zeros(len(index), np.bool_), index.digest
        for result in results:
            places = index.of_acker(result.acker, ackers).places()
            # The digest shows an acker that worked with another plan of the batch.
            if result.ranges != digest or len(result.complete) != len(places):
                raise InternalError(f"the result of acker {result.acker} is of other roots")
            complete[places] = result.complete
        if spans and not results:
            raise InternalError("no acker has a result")
        for span, after in zip(spans, [*spans[1:], None], strict=False):
            if span == after or span not in self._planned:
                raise InternalError(f"roots from {span.first} were settled twice, or never planned")
        return complete

    def _add_late(self, results: Sequence[TallyResult]) -> U64:
        """Add contributions to roots of earlier batches; return the completed roots.

        Contributions to ended roots, which the table no longer has, are dropped.
        """
        late = [Entries.none(), *(result.late for result in results)]
        roots = np.concatenate([entries.roots for entries in late])
        # By default progress does not help: as in Storm, the time-out counts from the start.
        if self._on_progress:
            self._open.touch(roots, self._buckets.newest)
        return self._open.add(Entries(roots, np.concatenate([entries.deltas for entries in late])))

    def _open_new(self, index: RootIndex, results: Sequence[TallyResult]) -> None:
        roots = np.concatenate([_NONE, *(result.open_roots for result in results)])
        vals = np.concatenate([_NONE, *(result.open_vals for result in results)])
        mine = index.locate(roots) >= 0
        if mine.any():
            self._open.insert(roots[mine], vals[mine], self._buckets.newest)
            self._due = True

    def _lost(
        self,
        index: RootIndex,
        complete: NDArray[np.bool_],
        results: Sequence[TallyResult],
        failed: FailedRoots,
    ) -> FailedRoots:
        """Return the roots of a batch that no acker reported."""
        known = complete.copy()
        for roots in (failed.roots, *(result.open_roots for result in results)):
            slots = index.slots(roots)
            known[slots[slots >= 0]] = True
        return FailedRoots.alike(index.roots()[~known], _LOST)


_NONE = np.empty(0, np.uint64)

_TIMED_OUT = Failure(
    reason=Reason.TIMEOUT,
    message="the tree was not complete in time: a bolt holds a tuple of it, or never acked it",
)
