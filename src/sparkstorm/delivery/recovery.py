"""What an earlier driver left behind: the outcome of its last batch, and whose verdicts that is."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.tally import RootRange, TallyResult
from sparkstorm.delivery.plans import BatchPlan
from sparkstorm.verdicts import Failure

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
    acked, failed = [np.empty(0, np.uint64)], {**rest.failed, **carried(ended.failed, was, now)}
    for old, new in pairs_of(was, now):
        acked.append(_inside(ended.acked, old) - np.uint64(old.first) + np.uint64(new.first))
    done = np.sort(np.concatenate(acked))
    for root in done.tolist():
        failed.pop(root, None)
    return Verdicts(done, failed)


def carried(failures: Mapping[int, Failure], was: BatchPlan, now: BatchPlan) -> dict[int, Failure]:
    """Return failures of roots of one plan as those of the same loads' roots in the other."""
    return {
        new.first + root - old.first: why
        for old, new in pairs_of(was, now)
        for root, why in failures.items()
        if old.first <= root < old.first + old.count
    }


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


def _inside(roots: U64, span: RootRange) -> U64:
    return roots[(roots >= np.uint64(span.first)) & (roots < np.uint64(span.first + span.count))]
