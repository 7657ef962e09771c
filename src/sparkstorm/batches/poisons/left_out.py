"""Left-out roots: the messages that a batch is run without, and the reason of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange, locate, merge_ranges
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.sources.planned import runs_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["LeftOut"]


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """The roots that a batch is run without.

    Attributes:
        excluded: all roots that a search leaves out: poisons, and roots behind the last poison.
        poisons: the roots that failed the job alone, with a sentence on what each did.
        given_up: roots that failed too often in a batch that is run again, and how; exactly once
            only.
    """

    excluded: tuple[RootRange, ...] = ()
    poisons: Mapping[int, str] = field(default_factory=dict)
    given_up: FailedRoots = field(default_factory=FailedRoots.none)

    @property
    def ranges(self) -> tuple[RootRange, ...]:
        """All left-out roots, merged."""
        if not len(self.given_up):
            return merge_ranges(self.excluded)
        given_up = runs_of(self.given_up.roots.astype(np.int64))
        return merge_ranges([*self.excluded, *(RootRange(a, b - a) for a, b in given_up)])

    def explained(self, verdicts: Verdicts, plan: BatchPlan) -> Verdicts:
        """Return the verdicts with the reasons of the left-out roots.

        The verdict on a poison says what it did, and is final. A root that was only in the way is
        not charged with a try.

        Args:
            verdicts: what ended by the batch.
            plan: the batch's plan.
        """
        spared = FailedRoots.alike(self._spared(verdicts.failed, plan), _NOT_RUN)
        failed = FailedRoots.merge([self.given_up, spared, verdicts.failed])
        poisons = {
            root: replace(failed[root], message=what, final=True)
            for root, what in self.poisons.items()
            if root in failed
        }
        return Verdicts(verdicts.acked, FailedRoots.merge([FailedRoots.of(poisons), failed]))

    def _spared(self, failed: FailedRoots, plan: BatchPlan) -> U64:
        """Return the lost roots that were only in the way of a run without poisons.

        Sparing cannot go on for ever: poisons are charged and given up, and without any poison
        some messages of the batch did run, and were charged if they failed. If neither is so, the
        left-out roots are charged like all other lost ones.
        """
        left_out = self.ranges
        count = sum(span.count for span in left_out)
        if not self.poisons and count >= sum(span.count for span in plan.ranges):
            return np.empty(0, np.uint64)
        lost = np.array([why.reason is Reason.LOST for why in failed.causes], np.bool_)
        roots = failed.roots[lost[failed.which]]
        absent = (locate(left_out, roots) >= 0) & ~np.isin(roots, [*map(np.uint64, self.poisons)])
        return roots[absent]


_NOT_RUN = Failure(
    reason=Reason.LOST,
    message="it was left out of its batch, which failed with other messages, and did not run",
    counted=False,
)
