"""Job results: the rows that a batch's job returned, and the words of its tasks beside them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.acking.tally import TallyResult
from sparkstorm.errors import AttributeStateError, BatchError, ComponentError, SparkstormError
from sparkstorm.packets.packet import Kind, Packet
from sparkstorm.tasks.acker import decode_result
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.state_runs import StateRuns

__all__ = ["Answers", "JobResult"]

_FATAL: dict[str, type[SparkstormError]] = {
    "AttributeStateError": AttributeStateError,
    "ComponentError": ComponentError,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of one job of a batch.

    Attributes:
        rows: the packets for the driver: those of the ackers, and of tapped components.
        reports: one for each task, the last if the task ran several times. They count when the
            batch is committed: if Spark cannot commit, the batch is run and reported once more.
        runs: the runs of stages with state whose state Spark could commit.
        secs: how long the job took.
    """

    rows: Sequence[bytes] = ()
    reports: Sequence[Report] = ()
    runs: StateRuns = field(default_factory=StateRuns)
    secs: float = 0.0

    def answers(self, number: int, ackers: int) -> "Answers":
        """Decode the rows.

        Args:
            number: the batch's number, for people.
            ackers: how many ackers there are; each must have answered.

        Raises:
            SparkstormError: a fault of the user's that must stop the topology.
            BatchError: not all ackers have answered.
        """
        packets = [Packet.decode(row) for row in self.rows]
        for packet in packets:
            if packet.head.kind is Kind.FATAL:
                raise _fatal(packet.payload())
        pairs = list(zip(self.rows, packets, strict=True))
        answered = [(row, packet) for row, packet in pairs if packet.head.kind is Kind.OUTCOME]
        if len(answered) != ackers:
            raise BatchError(f"batch {number}: {len(answered)} of {ackers} ackers answered")
        tapped = [packet for packet in packets if packet.head.kind is Kind.DATA]
        return Answers(
            results=[decode_result(packet) for _, packet in answered],
            rows=[row for row, _ in answered],
            tapped=sorted(tapped, key=lambda packet: packet.head.order),
            reports=self.reports,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A job's result, decoded.

    Attributes:
        results: the answers of the ackers.
        rows: the same as bytes, to be written down.
        tapped: the packets of tapped components, in order.
        reports: what its tasks counted and logged.
    """

    results: Sequence[TallyResult] = ()
    rows: Sequence[bytes] = ()
    tapped: Sequence[Packet] = ()
    reports: Sequence[Report] = ()


def _fatal(payload: bytes) -> SparkstormError:
    data = json.loads(payload)
    return _FATAL.get(data["kind"], BatchError)(data["message"])
