"""The handover of a checkpoint from one driver to the next.

A driver leaves its last plan, and the outcome of each batch that Spark was about to commit. The
next driver recovers the last batch, and Spark's next question shows what became of it. If Spark
asks for the batch's partitions, the batch was not committed and is run again. If Spark asks for the
next batch, this one was committed, and the outcome in the checkpoint has the verdicts that nobody
gave.
"""

from dataclasses import replace
from typing import final

from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.batches.batch import Batch, Event, Phase
from sparkstorm.batches.fault import NO_PLAN, Fault
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.planning.planner import BatchPlanner
from sparkstorm.batches.recovery.carry_over import carry_over
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.batches.recovery.outcome import BatchOutcome
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.clock import Clock
from sparkstorm.planning.plan import Plan
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Handover"]


@final
class Handover:
    """Takes a checkpoint over from the driver before, and leaves the checkpoint to the next driver.

    Args:
        plan: the topology's plan.
        journal: the files of all drivers.
        planner: makes loads of this driver from loads of the earlier driver.
        ledger: told of the roots that begin, and end, with the recovered batch.
        fault: guards steps that must be done whole.
        clock: the time.
    """

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        planner: BatchPlanner,
        ledger: Ledger,
        fault: Fault,
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._planner = planner
        self._ledger = ledger
        self._fault = fault
        self._clock = clock

    # --- from the driver before ----------------------------------------------------------------

    def recover(self, log: EngineLog) -> Batch | None:
        """Return the last batch of the driver before, as far as this driver can run it; or None.

        Args:
            log: the batches that Spark has heard of, and committed.

        Raises:
            CheckpointError: the checkpoint is damaged where the batch must be known.
        """
        was = self._journal.last(log)
        if was is None:
            return None
        data = self._journal.earlier_decision(was.number)
        if log.committed >= was.number:
            self._check_outcome(was, data)
        runnable = self._planner.adopt(was, self._clock.monotonic(), whole=data is not None)
        batch = Batch(runnable, Phase.RECOVERED, predecessor=was)
        if data is not None:
            batch.adopt(Decision.from_bytes(data).carried_over(was, runnable))
        self._ledger.begin(runnable.ranges)
        return batch

    def _check_outcome(self, was: BatchPlan, decision: bytes | None) -> None:
        """Raise the damage of a committed batch before anything runs."""
        self._journal.earlier_outcome(was.number)
        if self._plan.exactly_once and was.loads and decision is None:
            raise self._journal.missing_decision(was.number)

    def plan_again(self, batch: Batch) -> None:
        """Make a recovered batch a batch of this driver: as decided, or planned anew."""
        with self._fault.kept(NO_PLAN):
            was, batch.predecessor = batch.predecessor, None
            if batch.decision is None and was is not None:
                self._ledger.drop(batch.plan.ranges, _NO_OUTCOME)
                width = 0 if was.clean else was.messages
                now = self._clock.monotonic()
                batch.plan = self._planner.rerun(batch.plan, width=width, now=now)
                self._ledger.begin(batch.plan.ranges)

    def write(self, batch: Batch) -> None:
        """Write down the plan of a recovered batch that is run again, and its decision if any."""
        self._fault.check()
        if batch.decision is not None:  # before the plan, so that it is never missing
            batch.decision.check_committers(batch.plan.number, self._plan.committers)
            if self._plan.exactly_once:
                self._journal.write_decision(batch.plan.number, batch.decision.to_bytes())
        self._journal.write_plan(batch.plan)
        batch.advance(Event.WRITTEN)

    def verdicts(self, batch: Batch) -> Verdicts:
        """Return the verdicts of a recovered batch that Spark has committed."""
        lost = self._ledger.drop(batch.plan.ranges, _NO_OUTCOME)
        was, data = batch.predecessor, self._journal.earlier_outcome(batch.plan.number)
        if was is None or data is None or not was.ranges:
            return lost
        ended = BatchOutcome.from_bytes(data).verdicts(was)
        return carry_over(ended, was, batch.plan, rest=lost)

    # --- to the next driver ----------------------------------------------------------------------

    def leave_outcome(self, batch: Batch) -> None:
        """Write down the outcome of a batch that Spark may commit from now on."""
        outcome = BatchOutcome(rows=batch.answers.rows, left_out=batch.search)
        self._journal.write_outcome(batch.plan.number, outcome.to_bytes())

    def leave(self, last: int, batch: Batch | None) -> None:
        """Write down that this driver ends in good order.

        Args:
            last: the number of the last batch.
            batch: the last batch, unless Spark has committed it.
        """
        if batch is None:
            plan = self._planner.settled(last)
            self._journal.write_plan(replace(plan, clean=True, settled=True))
        elif batch.phase is not Phase.RECOVERED:
            self._journal.write_plan(replace(batch.plan, clean=True))


_NO_OUTCOME = Failure(
    reason=Reason.LOST,
    message="the driver that ran its batch ended before giving the verdict",
    counted=False,  # nothing failed: a bolt held it, say
)
