"""Carrying verdicts over from the roots of an earlier driver's plan to those of its repetition."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.tally import RootRange, TallyResult, locate
from sparkstorm.batches.planning.batch_plan import BatchPlan

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
    """Return the verdicts by a batch's results alone, without the ledger of its driver."""
    ledger = Ledger(None, 0.0)
    ledger.begin(plan.ranges)
    return ledger.settle(plan.ranges, results, 0.0)


def carry_over(ended: Verdicts, was: BatchPlan, now: BatchPlan, rest: Verdicts) -> Verdicts:
    """Return the verdicts on an earlier driver's roots as verdicts on the roots of the repetition.

    Args:
        ended: the verdicts of the batch as the earlier driver ran the batch.
        was: the earlier driver's plan.
        now: the same loads with roots of this driver.
        rest: the verdicts on roots of ``now`` that ``ended`` does not mention.
    """
    roots = np.sort(_moved(ended.acked, was, now)[0])
    failed = FailedRoots.merge([carried(ended.failed, was, now), rest.failed])
    return Verdicts(roots, failed.without(roots))


def carried(failed: FailedRoots, was: BatchPlan, now: BatchPlan) -> FailedRoots:
    """Return failures of one plan's roots as failures of the same loads' roots in the other."""
    roots, there = _moved(failed.roots, was, now)
    order = np.argsort(roots)
    return FailedRoots(roots[order], failed.which[there][order], failed.causes)


def pairs_of(was: BatchPlan, now: BatchPlan) -> Iterator[tuple[RootRange, RootRange]]:
    """Yield the roots of each load that is in both plans: the old and the new range."""
    before = {(p.owner, p.load.lane): p.range for p in was.loads}
    for planned in now.loads:
        old, new = before.get((planned.owner, planned.load.lane)), planned.range
        if old is not None and new is not None:
            yield old, new


def split_rows(data: bytes) -> list[bytes]:
    """Return the rows that :func:`join_rows` has joined."""
    rows, at = [], 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        rows.append(data[start:at])
    return rows


def _moved(roots: U64, was: BatchPlan, now: BatchPlan) -> tuple[U64, NDArray[np.bool_]]:
    """Return roots of the first plan as roots of the second; and which roots are in both plans."""
    pairs = sorted(pairs_of(was, now))
    which = locate([old for old, _ in pairs], roots)
    there = which >= 0
    shift = [new.first - old.first for old, new in pairs]
    steps = np.array(shift, np.int64)[which[there]].astype(np.uint64)
    return roots[there] + steps, there
