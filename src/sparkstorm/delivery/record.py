"""A batch as the coordinator sees it, between its plan and its commit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange, TallyResult
from sparkstorm.delivery.plans import BatchPlan
from sparkstorm.errors import AttributeStateError, BatchError, ComponentError, SparkstormError
from sparkstorm.execution.acker import decode_result
from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Kind, Packet
from sparkstorm.execution.report import Report

__all__ = ["BatchRecord"]

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
        time: when it was planned, in seconds since 1970.
        durable: whether the plan is written down.
        excluded: what is left out of it, since its job failed with it.
        poisons: roots that failed the job on their own, with what each did.
        results: what its ackers said; None until its job is done.
        tapped: the packets of tapped components, in order.
        secs: how long its job took.
        reports: what its tasks reported.
        recovered: the whole plan of an earlier driver, whose batch this still is; ``plan`` is the
            part that can be run again.
    """

    plan: BatchPlan
    time: float
    durable: bool = True
    excluded: tuple[RootRange, ...] = ()
    poisons: Mapping[int, str] = field(default_factory=dict)
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
        return replace(self.plan.info(self.excluded), time=self.time)

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
        """Say in the verdicts on its poisons what they did, and that it is the last word."""
        failed = dict(verdicts.failed)
        for root, what in self.poisons.items():
            if root in failed:
                failed[root] = replace(failed[root], message=what, final=True)
        return Verdicts(verdicts.acked, failed)


def _fatal(payload: bytes) -> SparkstormError:
    data = json.loads(payload)
    return _FATAL.get(data["kind"], BatchError)(data["message"])
