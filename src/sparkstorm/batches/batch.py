"""A batch: the phases from plan to commit, as a table; an event out of turn raises.

::

    RECOVERED ─STARTED─► PLANNED ─WRITTEN─► DURABLE ─RAN─► RAN ─JUDGED─► JUDGED ─DECIDED─► DECIDED
        │                                    ▲ ▲            │                                │
        │                                    │ ╰─ROLLED_BACK╯                             APPLIED
        │                                    ╰──────STARTED (run again) from any phase       ▼
        ╰──────────COMMITTED─────────► COMMITTED ◄──────────────COMMITTED────────────── APPLIED

Spark sets the pace. Spark asks for the loads (STARTED), calls ``foreachBatch`` (RAN to APPLIED),
and asks for the next batch only after the commit (COMMITTED). If Spark cannot commit, Spark starts
the batch once more, from any phase. A batch of an earlier driver is RECOVERED until Spark's next
question shows whether the batch is committed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.job_result import Answers, JobResult
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.poisons.left_out import LeftOut
from sparkstorm.batches.recovery.carry_over import ended_by
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.batches.repeats import Repeats
from sparkstorm.errors import BatchError, InternalError
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.tasks.state_runs import Place
from sparkstorm.texts.logs import logger_of

__all__ = ["NEXT", "Batch", "BatchTimes", "Event", "Phase"]

_MAX_DIFFERED = 10
"""How often a batch is rolled back for differing runs, before the query is started anew."""

_logger = logger_of(__name__)


class Phase(StrEnum):
    """The phase of a batch."""

    RECOVERED = "recovered"
    """An earlier driver planned the batch; Spark may have committed the batch or not."""
    PLANNED = "planned"
    """The plan is made, and not yet in the checkpoint: Spark must not hear of the batch."""
    DURABLE = "durable"
    """The plan is in the checkpoint: the job may run."""
    RAN = "ran"
    """The job has returned, and all ackers have answered."""
    JUDGED = "judged"
    """The result stands: no roll-back from here on."""
    DECIDED = "decided"
    """The outcome is in the checkpoint: another driver would give the same verdicts."""
    APPLIED = "applied"
    """All committers have applied the batch, or there are none: Spark may commit."""
    COMMITTED = "committed"
    """Spark has committed the batch: the verdicts may go out."""


class Event(StrEnum):
    """The events in a batch's life."""

    STARTED = "started"
    """Spark asks for the loads, for the first time or once more: the batch is not committed."""
    WRITTEN = "written"
    RAN = "ran"
    ROLLED_BACK = "rolled back"
    JUDGED = "judged"
    DECIDED = "decided"
    APPLIED = "applied"
    COMMITTED = "committed"


NEXT: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.RECOVERED, Event.STARTED): Phase.PLANNED,
    (Phase.RECOVERED, Event.COMMITTED): Phase.COMMITTED,
    (Phase.PLANNED, Event.STARTED): Phase.PLANNED,  # the checkpoint could not be written to
    (Phase.PLANNED, Event.WRITTEN): Phase.DURABLE,
    (Phase.DURABLE, Event.STARTED): Phase.DURABLE,
    (Phase.DURABLE, Event.RAN): Phase.RAN,
    (Phase.DURABLE, Event.ROLLED_BACK): Phase.DURABLE,
    (Phase.RAN, Event.STARTED): Phase.DURABLE,
    (Phase.RAN, Event.ROLLED_BACK): Phase.DURABLE,
    (Phase.RAN, Event.JUDGED): Phase.JUDGED,
    (Phase.JUDGED, Event.STARTED): Phase.DURABLE,
    (Phase.JUDGED, Event.DECIDED): Phase.DECIDED,
    (Phase.DECIDED, Event.STARTED): Phase.DURABLE,
    (Phase.DECIDED, Event.APPLIED): Phase.APPLIED,
    (Phase.APPLIED, Event.STARTED): Phase.DURABLE,
    (Phase.APPLIED, Event.COMMITTED): Phase.COMMITTED,
}
"""The phase that follows on an event; an event without an entry is out of turn."""


@final
@dataclass(slots=True)
class BatchTimes:
    """The times of a batch's steps, by the driver's clock.

    Attributes:
        planned: when the batch was planned; None if an earlier driver did.
        plan_secs: how long planning took.
        started: when Spark first asked for the loads.
        job_secs: how long the last run of the job took.
        ran: when the last run of the job had returned.
    """

    planned: float | None = None
    plan_secs: float = 0.0
    started: float | None = None
    job_secs: float = 0.0
    ran: float = 0.0

    @property
    def start_secs(self) -> float:
        """The time from the plan until Spark started the batch; 0 if not known."""
        if self.planned is None or self.started is None:
            return 0.0
        return self.started - self.planned

    def cycle_secs(self, committed: float) -> float:
        """Return the time from plan to commit, without failed runs in between.

        Spark's own files of a batch are written before and after the job, perhaps far away.
        Returns 0 if the times are not known.
        """
        if self.planned is None or self.started is None or not self.job_secs:
            return 0.0
        return (self.started - self.planned) + self.job_secs + (committed - self.ran)


@final
@dataclass(slots=True)
class Batch:
    """One batch until its commit: the phase, and the facts for the coordinator.

    Attributes:
        plan: the plan to run.
        phase: the phase; only :meth:`advance` changes the phase.
        predecessor: the whole plan of an earlier driver, while the batch is RECOVERED; ``plan`` is
            the part that this driver can run again.
        search: the roots that a search for poisons leaves out.
        repeats: how often the batch was run, and the failures meanwhile; exactly once only.
        decision: the content that the batch must have; exactly once only.
        answers: the ackers' answers, once the job has run.
        differed: how often the batch was rolled back for differing runs of one stage.
        times: the times of its steps.
        traced: the roots whose trees people want to see.
        followed: texts by which tasks find more of these.
    """

    plan: BatchPlan
    phase: Phase = Phase.PLANNED
    predecessor: BatchPlan | None = None
    search: LeftOut = field(default_factory=LeftOut)
    repeats: Repeats = field(default_factory=Repeats)
    decision: Decision | None = None
    answers: Answers = field(default_factory=Answers)
    differed: int = 0
    times: BatchTimes = field(default_factory=BatchTimes)
    traced: tuple[RootRange, ...] = ()
    followed: tuple[str, ...] = ()

    def advance(self, event: Event) -> None:
        """Go on to the next phase.

        Raises:
            InternalError: the event is out of turn.
        """
        following = NEXT.get((self.phase, event))
        if following is None:
            raise InternalError(f"batch {self.plan.number} is {self.phase}, and cannot be {event}")
        self.phase = following

    def start(self, now: float) -> None:
        """Note that Spark is about to run the batch, for the first time or once more."""
        self.advance(Event.STARTED)
        self.differed = 0
        if self.times.started is None:
            self.times.started = now

    def leave_out(self, excluded: Sequence[RootRange], poisons: Mapping[int, str]) -> None:
        """Leave roots out of the next run; they replace the roots left out before."""
        self.search = LeftOut(tuple(excluded), dict(poisons))

    def ran(self, result: JobResult, ackers: int, now: float) -> None:
        """Take the result of the job.

        Raises:
            SparkstormError: a fault of the user's that must stop the topology.
            BatchError: not all ackers have answered.
        """
        self.answers = result.answers(self.plan.number, ackers)
        self.times.job_secs, self.times.ran = result.secs, now
        self.advance(Event.RAN)

    @property
    def matters(self) -> bool:
        """Whether a draining run waits for the batch: not for a batch of ticks alone."""
        return bool(self.plan.loads or self.plan.signals) or self.phase is Phase.RECOVERED

    @property
    def runs(self) -> bool:
        """Whether the batch has begun, and its outcome is not yet decided."""
        return self.phase in (Phase.DURABLE, Phase.RAN, Phase.JUDGED)

    @property
    def info(self) -> BatchInfo:
        """The facts for the batch's tasks."""
        info = self.plan.info(self.left_out.ranges, self.repeats.tries)
        return replace(info, traced=self.traced, followed=self.followed)

    @property
    def left_out(self) -> LeftOut:
        """The roots that the batch is run without. A decision cannot be changed any more."""
        if self.decision is None:
            return replace(self.search, given_up=self.repeats.given_up)
        decided = self.decision
        return LeftOut(decided.excluded, self.search.poisons, decided.given_up)

    @property
    def holders(self) -> frozenset[int]:
        """The tasks that hold roots of the batch beyond its end."""
        held = [result.held.holders for result in self.answers.results]
        return frozenset(np.unique(np.concatenate(held)).tolist() if held else ())

    def failing(self) -> FailedRoots:
        """Return the roots that failed in the job although they were not left out."""
        failed = ended_by(self.plan, self.answers.results).failed
        return failed.select(~self.info.is_excluded(failed.roots))

    def repeat(self, without: FailedRoots) -> None:
        """Roll back, to run all again as the next attempt, ``without`` some roots for good."""
        self.advance(Event.ROLLED_BACK)
        self.repeats.repeat(without)

    def start_over(self, places: Sequence[Place]) -> None:
        """Roll back, since Spark ran stages twice and the runs differ: no result may be used.

        Raises:
            BatchError: the runs differed too often.
        """
        self.advance(Event.ROLLED_BACK)
        self.differed += 1
        stages = ", ".join(f"stage {stage} in partition {partition}" for stage, partition in places)
        what = (
            f"batch {self.plan.number}: Spark ran {stages} more than once, and the runs are not "
            f"known to have done the same, so the state that it would commit may lack what was "
            f"acked"
        )
        if self.differed > _MAX_DIFFERED:
            raise BatchError(
                f"{what}; so it went {self.differed} times. Executors or their disks are lost "
                f"faster than a batch takes: mend that, or make batches smaller "
                f"(topology.batch.max.messages)"
            )
        _logger.warning("%s: the batch is rolled back and run again", what)

    def adopt(self, decision: Decision) -> None:
        """Run the batch with the content that an earlier driver decided on."""
        self.decision, self.plan = decision, replace(self.plan, time=decision.time)
        self.repeats = Repeats(tries=decision.tries, given_up=decision.given_up)

    def explained(self, verdicts: Verdicts) -> Verdicts:
        """Return the verdicts with the reasons why roots were left out."""
        return self.left_out.explained(verdicts, self.plan)
