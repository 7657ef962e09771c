"""What an earlier driver left behind: the outcome of its last batch, and whose verdicts that is."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.tally import RootRange, TallyResult, locate
from sparkstorm.batches.batch_plan import BatchPlan

__all__ = [
    "carried",
    "carry_over",
    "ended_by",
    "join_rows",
    "pairs_of",
    "split_rows",
]

_LENGTH_BYTES = 8


def join_rows(rows: Sequence[bytes]) -> bytes:
    """Return rows as the content of one file."""
    return b"".join(
        piece for row in rows for piece in (len(row).to_bytes(_LENGTH_BYTES, "little"), row)
    )


def ended_by(plan: BatchPlan, results: Sequence[TallyResult]) -> Verdicts:
    """Return what ended by a batch, whatever the ledger of its driver knows."""
    ledger = Ledger(None, 0.0)
    ledger.begin(plan.ranges)
    return ledger.settle(plan.ranges, results, 0.0)


def carry_over(ended: Verdicts, was: BatchPlan, now: BatchPlan, rest: Verdicts) -> Verdicts:
    """Put verdicts on the roots of an earlier driver's plan onto those of its repetition.

    Args:
        ended: what ended in the batch as the earlier driver ran it.
        was: the batch as it planned it.
        now: the same loads with roots of this driver.
        rest: the verdicts of the roots of ``now`` of which ``ended`` says nothing.
    """
    roots = np.sort(_moved(ended.acked, was, now)[0])
    failed = FailedRoots.merge([carried(ended.failed, was, now), rest.failed])
    return Verdicts(roots, failed.without(roots))


def carried(failed: FailedRoots, was: BatchPlan, now: BatchPlan) -> FailedRoots:
    """Return failures of roots of one plan as those of the same loads' roots in the other."""
    roots, there = _moved(failed.roots, was, now)
    order = np.argsort(roots)
    return FailedRoots(roots[order], failed.which[there][order], failed.causes)


def pairs_of(was: BatchPlan, now: BatchPlan) -> Iterator[tuple[RootRange, RootRange]]:
    """For each load that is in both plans, its roots in each."""
    before = {(p.owner, p.load.lane): p.range for p in was.loads}
    for planned in now.loads:
        old, new = before.get((planned.owner, planned.load.lane)), planned.range
        if old is not None and new is not None:
            yield old, new


def split_rows(data: bytes) -> list[bytes]:
    """Return what :func:`join_rows` has joined."""
    rows, at = [], 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        rows.append(data[start:at])
    return rows


def _moved(roots: U64, was: BatchPlan, now: BatchPlan) -> tuple[U64, NDArray[np.bool_]]:
    """The roots of loads that are in both plans, as those of the second; and which these are."""
    pairs = sorted(pairs_of(was, now))
    which = locate([old for old, _ in pairs], roots)
    there = which >= 0
    shift = [new.first - old.first for old, new in pairs]
    steps = np.array(shift, np.int64)[which[there]].astype(np.uint64)
    return roots[there] + steps, there
