"""A batch as the coordinator sees it, between its plan and its commit."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.lineage import Indexes
from sparkstorm.acking.tally import RootRange, TallyResult, merge_ranges
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.recovery.carry_over import ended_by
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.errors import AttributeStateError, BatchError, ComponentError, SparkstormError
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.packet import Kind, Packet
from sparkstorm.sources.planned import runs_of
from sparkstorm.tasks.acker import decode_result
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.state_runs import Place
from sparkstorm.texts.logs import logger_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["BatchRecord"]

_MAX_DIFFERED = 10
"""How often a batch is rolled back for runs that differ, before the query is started anew."""

_logger = logger_of(__name__)

_FATAL: dict[str, type[SparkstormError]] = {
    "AttributeStateError": AttributeStateError,
    "ComponentError": ComponentError,
}


@final
@dataclass(slots=True)
class BatchRecord:
    """What is known of a batch that is not committed yet.

    Attributes:
        plan: what is run.
        durable: whether the plan is written down.
        excluded: what is left out of it, since its job failed with it.
        differed: how often it was rolled back since runs of one stage differed.
        tries: how often it was run, if it was rolled back; exactly once only.
        failed: how often each root failed in it, while others were rolled back with it.
        given_up: roots that are left out since they failed too often, and how; exactly once only.
        decision: what it happens with, if that is decided; exactly once only.
        poisons: roots that failed the job on their own, with what each did.
        results: what its ackers said; None until its job is done.
        tapped: the packets of tapped components, in order.
        secs: how long its job took, the last time if it ran several times.
        planned: when it was planned; None if an earlier driver did.
        asked: when Spark first asked what to read.
        finished: when its job was done, the last time.
        reports: what its tasks reported.
        recovered: the whole plan of an earlier driver, whose batch this still is; ``plan`` is the
            part that can be run again.
    """

    plan: BatchPlan
    durable: bool = True
    excluded: tuple[RootRange, ...] = ()
    poisons: Mapping[int, str] = field(default_factory=dict)
    differed: int = 0
    tries: int = 1
    failed: Counter[int] = field(default_factory=Counter)
    given_up: FailedRoots = field(default_factory=FailedRoots.none)
    decision: Decision | None = None
    results: list[TallyResult] | None = None
    tapped: list[Packet] = field(default_factory=list)
    secs: float = 0.0
    planned: float | None = None
    asked: float | None = None
    finished: float = 0.0
    reports: Sequence[Report] = ()
    recovered: BatchPlan | None = None

    @property
    def matters(self) -> bool:
        """Whether anybody has to wait for it: not if it was planned for ticks alone."""
        return bool(self.plan.loads or self.plan.signals) or self.recovered is not None

    @property
    def info(self) -> BatchInfo:
        """What its tasks need to know."""
        return self.plan.info(self.left_out, self.tries)

    @property
    def left_out(self) -> tuple[RootRange, ...]:
        """The roots that it is run without."""
        if self.decision is not None:
            return self.decision.excluded
        if not len(self.given_up):
            return merge_ranges(self.excluded)
        given_up = runs_of(self.given_up.roots.astype(np.int64))
        return merge_ranges([*self.excluded, *(RootRange(a, b - a) for a, b in given_up)])

    @property
    def holders(self) -> frozenset[int]:
        """The tasks that hold roots of it beyond its end."""
        held = [result.held.holders for result in self.results or ()]
        return frozenset(np.unique(np.concatenate(held)).tolist() if held else ())

    def cycle_secs(self, committed: float) -> float:
        """How long it took from its plan to its commit, without what failed in between.

        Spark's files of a batch are written before and after its job, and may be far away. Returns
        0 if nobody took the time.
        """
        if self.planned is None or self.asked is None or not self.secs:
            return 0.0
        return (self.asked - self.planned) + self.secs + (committed - self.finished)

    def failing(self) -> FailedRoots:
        """The roots that failed although they were not left out; to be asked after its job."""
        failed = ended_by(self.plan, self.results or ()).failed
        return failed.select(~self.info.is_excluded(failed.roots))

    def note_failing(self, failing: FailedRoots) -> Indexes:
        """Count these failures; return for each root how often it was tried, before, too.

        A message is tried when it fails by itself, not when others are rolled back with it.
        """
        counted = np.array([failure.counted for failure in failing.causes], np.bool_)
        self.failed.update(failing.roots[counted[failing.which]].tolist())
        before = self.plan.info().attempts(failing.roots)
        return before + self._times_failed(failing) - 1

    def repeat(self, without: FailedRoots) -> None:
        """Run it again whole, as the next attempt at its messages, without some of them for good.

        The attempt of a failure in here counts from 1 within the batch.
        """
        times = self._times_failed(without)
        for attempt in np.unique(times).tolist():
            last = partial(replace, final=True, attempt=attempt)
            gone = without.select(times == attempt).changed(last)
            self.given_up = FailedRoots.merge([gone, self.given_up])
        self.tries += 1
        self.results = None

    def note_differing(self, places: Sequence[Place]) -> None:
        """Note that Spark ran stages twice and that the runs differ: none of it may be used.

        Raises:
            BatchError: it happened too often.
        """
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

    def _times_failed(self, failing: FailedRoots) -> Indexes:
        """How often each of these has failed in it, once at least."""
        return np.array([self.failed[root] or 1 for root in failing.roots.tolist()], np.int64)

    def take_over(self, decision: Decision) -> None:
        """Take up what an earlier driver has decided about it."""
        self.decision, self.plan = decision, replace(self.plan, time=decision.time)
        self.given_up, self.tries = decision.given_up, decision.tries

    def take_in(self, rows: Sequence[bytes], ackers: int) -> list[bytes]:
        """Take in the rows that its job returned; return those of the ackers.

        Raises:
            SparkstormError: a fault of the user's that must stop the topology.
            BatchError: the outcome is not whole.
        """
        packets = [Packet.decode(row) for row in rows]
        for packet in packets:
            if packet.head.kind is Kind.FATAL:
                raise _fatal(packet.payload())
        results = [decode_result(p) for p in packets if p.head.kind is Kind.OUTCOME]
        if len(results) != ackers:
            raise BatchError(
                f"batch {self.plan.number}: {len(results)} of {ackers} ackers answered"
            )
        self.results = results
        tapped = (packet for packet in packets if packet.head.kind is Kind.DATA)
        self.tapped = sorted(tapped, key=lambda packet: packet.head.order)
        return [r for r, p in zip(rows, packets, strict=True) if p.head.kind is Kind.OUTCOME]

    def with_poisons(self, verdicts: Verdicts) -> Verdicts:
        """Say in the verdicts on its poisons what they did, and that it is the last word.

        And on what was given up, why; and on what was left out beside them, that it was no try.
        """
        spared = FailedRoots.alike(self._spared(verdicts.failed), _LEFT_OUT)
        failed = FailedRoots.merge([self.given_up, spared, verdicts.failed])
        poisons = {
            root: replace(failed[root], message=what, final=True)
            for root, what in self.poisons.items()
            if root in failed
        }
        return Verdicts(verdicts.acked, FailedRoots.merge([FailedRoots.of(poisons), failed]))

    def _spared(self, failed: FailedRoots) -> U64:
        """Those of the lost roots that only were in the way when it was run without its poisons.

        This cannot go on for ever: poisons are charged and given up, and without any poison some
        messages of the batch did run, and were charged if they failed. If neither is so, what was
        left out is charged like whatever else is lost.
        """
        left_out = sum(span.count for span in self.left_out)
        if not self.poisons and left_out >= sum(span.count for span in self.plan.ranges):
            return np.empty(0, np.uint64)
        lost = np.array([why.reason is Reason.LOST for why in failed.causes], np.bool_)
        roots = failed.roots[lost[failed.which]]
        absent = self.info.is_excluded(roots) & ~np.isin(roots, [*map(np.uint64, self.poisons)])
        return roots[absent]


_LEFT_OUT = Failure(
    reason=Reason.LOST,
    message="it was left out of its batch, which failed with other messages, and did not run",
    counted=False,
)


def _fatal(payload: bytes) -> SparkstormError:
    data = json.loads(payload)
    return _FATAL.get(data["kind"], BatchError)(data["message"])
