"""The agenda: whether there is a next batch, and what rides in it beside messages."""

from dataclasses import replace
from typing import final

from sparkstorm.batches.batch import Batch, BatchTimes, Event
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.events.ticks import Ticks
from sparkstorm.batches.fault import NO_PLAN, Fault
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.planning.planner import BatchPlanner

__all__ = ["Agenda"]


@final
class Agenda:
    """Plans batches of messages, ticks and ended roots, and writes them down; not thread-safe.

    Args:
        journal: where plans are written.
        planner: plans the messages.
        ticks: the tick tuples.
        ended_roots: the roots that tasks must hear of.
        fault: stands around the planning, which must be done whole.
    """

    def __init__(
        self,
        journal: Journal,
        planner: BatchPlanner,
        ticks: Ticks,
        ended_roots: EndedRoots,
        fault: Fault,
    ) -> None:
        self._journal = journal
        self._planner = planner
        self._ticks = ticks
        self._ended_roots = ended_roots
        self._fault = fault
        self._unwritten: Batch | None = None

    @property
    def due(self) -> bool:
        """Whether a batch must come before the run may end."""
        return self._unwritten is not None or self._ended_roots.due

    def next_batch(
        self, number: int, now: float, *, fresh: bool, for_ticks: bool, even_empty: bool
    ) -> Batch | None:
        """Plan a batch and write its plan down, or return None if there is nothing to do.

        If the checkpoint cannot be written to, the plan waits here for the next call.

        Args:
            number: the batch's number.
            now: the time.
            fresh: whether spouts are asked for new messages, not only for retries.
            for_ticks: whether a batch is worth while for ticks alone.
            even_empty: whether a batch without anything is wanted, too.
        """
        if self._unwritten is None:
            with self._fault.kept(NO_PLAN):
                plan = self._make(
                    number, now, fresh=fresh, for_ticks=for_ticks, even_empty=even_empty
                )
            if plan is None:
                return None
            self._unwritten = Batch(plan, times=BatchTimes(planned=now))
        batch = self._unwritten
        self._journal.write_plan(batch.plan)
        batch.advance(Event.WRITTEN)
        self._unwritten = None
        return batch

    def tidy(self) -> None:
        """Delete the files of earlier batches, once the next plan is written."""
        self._journal.purge()

    def observe(self, batch: Batch, now: float) -> None:
        """Learn from a committed batch how many messages the next one should hold."""
        self._planner.observe(messages=batch.plan.messages, secs=batch.times.cycle_secs(now))

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending and ready."""
        return self._planner.intake_limit(task)

    def _make(
        self, number: int, now: float, *, fresh: bool, for_ticks: bool, even_empty: bool
    ) -> BatchPlan | None:
        plan = self._planner.plan(number, fresh=fresh, now=now)
        if plan is None:
            due = self._ended_roots.due or (for_ticks and self._ticks.due(now))
            if not due and not even_empty:
                return None
            plan = self._planner.settled(number)
        return replace(plan, signals=self._ended_roots.take(), ticks=self._ticks.take(now))
