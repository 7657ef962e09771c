"""What a driver does with the last batch of the one before it.

Spark shows what became of that batch by what it asks next. If it asks for the batch's partitions,
the batch was not committed and is run again. If it asks for the next batch, this one was
committed, and the outcome on disk has the verdicts that nobody gave.
"""

from typing import final

from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.batches.batch import BatchRecord
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planner import BatchPlanner
from sparkstorm.batches.recovery.carry_over import carry_over
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.batches.recovery.outcome import Outcome
from sparkstorm.clock import Clock
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Succession"]


@final
class Succession:
    """Takes up, runs again or settles the last batch of an earlier driver.

    Args:
        journal: what that driver wrote down.
        planner: makes loads of this driver from those of that one.
        ledger: told of the roots that begin, and end, with it.
        clock: the time.
        exactly_once: whether batches happen exactly once.
    """

    def __init__(
        self,
        journal: Journal,
        planner: BatchPlanner,
        ledger: Ledger,
        clock: Clock,
        *,
        exactly_once: bool,
    ) -> None:
        self._exactly_once = exactly_once
        self._journal = journal
        self._planner = planner
        self._ledger = ledger
        self._clock = clock

    def take_up(self, plan: BatchPlan, *, committed: bool) -> BatchRecord:
        """Return the batch as far as it can be run by this driver, if it must.

        Raises:
            CheckpointError: what is known of it is damaged.
        """
        data = self._journal.earlier_decision(plan.number)
        if committed:
            self._journal.earlier_outcome(plan.number)  # damage is told before anything runs
            if self._exactly_once and plan.loads and data is None:
                raise self._journal.missing_decision(plan.number)
        runnable = self._planner.take_up(plan, self._clock.monotonic(), whole=data is not None)
        record = BatchRecord(runnable, recovered=plan)
        if data is not None:
            record.take_over(Decision.from_bytes(data).carried_over(plan, runnable))
        self._ledger.begin(runnable.ranges)
        return record

    def rerun(self, record: BatchRecord, was: BatchPlan) -> None:
        """Make the batch one of this driver's own: as it was, if it was decided on, or anew."""
        record.recovered, record.durable = None, False
        if record.decision is not None:
            return
        self._ledger.drop(record.plan.ranges, _NO_OUTCOME)
        width = 0 if was.clean else was.messages
        record.plan = self._planner.rerun(record.plan, width=width, now=self._clock.monotonic())
        self._ledger.begin(record.plan.ranges)

    def verdicts(self, record: BatchRecord) -> Verdicts:
        """Return the verdicts of a batch that was committed; they may not have been given."""
        lost = self._ledger.drop(record.plan.ranges, _NO_OUTCOME)
        was, data = record.recovered, self._journal.earlier_outcome(record.plan.number)
        if was is None or data is None or not was.ranges:
            return lost
        ended = Outcome.from_bytes(data).verdicts(was)
        return carry_over(ended, was, record.plan, rest=lost)


_NO_OUTCOME = Failure(
    reason=Reason.LOST,
    message="the driver that ran its batch ended before giving the verdict",
    counted=False,  # nothing failed: a bolt held it, say
)
