"""A batch as the coordinator sees it, between its plan and its commit."""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange, TallyResult, merge_ranges
from sparkstorm.delivery.decision import Decision
from sparkstorm.delivery.plans import BatchPlan
from sparkstorm.delivery.recovery import ended_by
from sparkstorm.errors import AttributeStateError, BatchError, ComponentError, SparkstormError
from sparkstorm.execution.acker import decode_result
from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Kind, Packet
from sparkstorm.execution.report import Report
from sparkstorm.execution.state_runs import Place
from sparkstorm.verdicts import Failure, Reason

__all__ = ["BatchRecord"]

_MAX_DIFFERED = 10
"""How often a batch is rolled back for runs that differ, before the query is started anew."""

_logger = logging.getLogger(__name__)

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
        secs: how long its job took.
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
    given_up: dict[int, Failure] = field(default_factory=dict)
    decision: Decision | None = None
    results: list[TallyResult] | None = None
    tapped: list[Packet] = field(default_factory=list)
    secs: float = 0.0
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
        return merge_ranges([*self.excluded, *(RootRange(root, 1) for root in self.given_up)])

    @property
    def holders(self) -> frozenset[int]:
        """The tasks that hold roots of it beyond its end."""
        return frozenset().union(*(result.holders for result in self.results or ()))

    def failing(self) -> dict[int, Failure]:
        """The roots that failed although they were not left out; to be asked after its job."""
        failed = ended_by(self.plan, self.results or ()).failed
        roots = np.array(list(failed), np.uint64)
        wanted = roots[~self.info.is_excluded(roots)]
        return {root: failed[root] for root in wanted.tolist()}

    def note_failing(self, failing: Mapping[int, Failure]) -> dict[int, int]:
        """Count these failures; return for each root how often it was tried, before, too.

        A message is tried when it fails by itself, not when others are rolled back with it.
        """
        self.failed.update(root for root, failure in failing.items() if failure.counted)
        before = self.plan.info()
        return {root: before.attempt(root) + max(self.failed[root], 1) - 1 for root in failing}

    def repeat(self, without: Mapping[int, Failure]) -> None:
        """Run it again whole, as the next attempt at its messages, without some of them for good.

        The attempt of a failure in here counts from 1 within the batch.
        """
        self.given_up.update(
            (root, replace(why, final=True, attempt=max(self.failed[root], 1)))
            for root, why in without.items()
        )
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

    def take_over(self, decision: Decision) -> None:
        """Take up what an earlier driver has decided about it."""
        self.decision, self.plan = decision, replace(self.plan, time=decision.time)
        self.given_up, self.tries = dict(decision.given_up), decision.tries

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
        failed = dict(verdicts.failed)
        failed.update((root, _LEFT_OUT) for root in self._spared(failed))
        failed.update(self.given_up)
        for root, what in self.poisons.items():
            if root in failed:
                failed[root] = replace(failed[root], message=what, final=True)
        return Verdicts(verdicts.acked, failed)

    def _spared(self, failed: Mapping[int, Failure]) -> list[int]:
        """Those of the lost roots that only were in the way when it was run without its poisons.

        This cannot go on for ever: poisons are charged and given up, and without any poison some
        messages of the batch did run, and were charged if they failed. If neither is so, what was
        left out is charged like whatever else is lost.
        """
        left_out = sum(span.count for span in self.left_out)
        if not self.poisons and left_out >= sum(span.count for span in self.plan.ranges):
            return []
        roots = np.array([r for r, why in failed.items() if why.reason is Reason.LOST], np.uint64)
        absent: list[int] = roots[self.info.is_excluded(roots)].tolist()
        return [root for root in absent if root not in self.poisons]


_LEFT_OUT = Failure(
    reason=Reason.LOST,
    message="it was left out of its batch, which failed with other messages, and did not run",
    counted=False,
)


def _fatal(payload: bytes) -> SparkstormError:
    data = json.loads(payload)
    return _FATAL.get(data["kind"], BatchError)(data["message"])
