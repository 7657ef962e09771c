"""The last stage: each acker task merges the contributions to its roots, and tells the driver."""

import json
import time
from collections import Counter
from collections.abc import Iterable

import numpy as np

from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import HeldRoots, Tally, TallyResult
from sparkstorm.errors import InternalError
from sparkstorm.metrics import TaskMetrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.failures import pack_failed, unpack_failed
from sparkstorm.packets.packet import DRIVER, Kind, Packet, PacketWriter, read_head
from sparkstorm.planning.plan import ACKER, Plan
from sparkstorm.tasks.dispatch import Delivery
from sparkstorm.tasks.report import Report

__all__ = ["decode_result", "encode_result", "run_ackers"]


def run_ackers(
    plan: Plan, partition: int, packets: Iterable[bytes], batch: BatchInfo
) -> tuple[list[Delivery], list[Report]]:
    """Run the acker tasks of a partition, also those without any packet."""
    started = time.perf_counter()
    tallies = {
        task: Tally(batch.ranges, acker, len(plan.ackers), excluded=batch.excluded)
        for acker, task in enumerate(plan.ackers)
        if plan.home(task) == partition
    }
    out: list[Delivery] = []
    received: Counter[int] = Counter()
    # The first failure of a root counts, so the order must not be Spark's.
    for data in sorted(packets, key=lambda data: read_head(data).order):
        packet = Packet.decode(data)
        # Taps and faults pass through the last stage on their way to the driver.
        if packet.head.target == DRIVER:
            out.append((partition, data))
        elif packet.head.target in tallies:
            _take(tallies[packet.head.target], packet)
            received[packet.head.target] += packet.head.count
        else:
            raise InternalError(f"a packet for task {packet.head.target} reached the ackers")
    results = {task: tally.result() for task, tally in tallies.items()}
    for task, result in results.items():
        parts = encode_result(result)
        out.append((partition, PacketWriter(task).for_driver(Kind.OUTCOME, parts)))
    # The ackers of a partition share its packets, so they share the time as well.
    secs = (time.perf_counter() - started) / max(1, len(results))
    return out, [_report(task, results[task], received[task], secs) for task in results]


def _report(task: int, result: TallyResult, received: int, secs: float) -> Report:
    metrics = TaskMetrics(
        executed=received,
        acked=int(result.complete.sum()),
        failed=len(result.failed),
        process_secs=secs,
    )
    return Report(ACKER, task, metrics=metrics)


def _take(tally: Tally, packet: Packet) -> None:
    match packet.head.kind:
        case Kind.ENTRIES:
            tally.add(packet.entries())
        case Kind.HOLD:
            tally.hold(packet.roots(), packet.head.source)
        case Kind.RESET:
            tally.reset_timeout(packet.roots())
        case Kind.NOTES:
            tally.fail(packet.failed())
        case other:
            raise InternalError(f"an acker cannot take a packet of kind {other.name}")


def encode_result(result: TallyResult) -> list[bytes]:
    """Encode an acker's result as the parts of an OUTCOME packet."""
    head = {"acker": result.acker, "ranges": result.ranges, "complete": len(result.complete)}
    arrays = (
        result.open_roots,
        result.open_vals,
        result.late.roots,
        result.late.deltas,
        result.resets,
        result.held.roots,
        result.held.holders,
    )
    return [
        json.dumps(head).encode(),
        *(array.tobytes() for array in arrays),
        np.packbits(result.complete).tobytes(),
        *pack_failed(result.failed),
    ]


def decode_result(packet: Packet) -> TallyResult:
    """Decode an OUTCOME packet; the driver calls this."""
    head = json.loads(bytes(packet.parts[0]))
    opened, vals, late_roots, late_deltas, resets, held = (
        np.frombuffer(part, np.uint64) for part in packet.parts[1:7]
    )
    packed = np.frombuffer(packet.parts[8], np.uint8)
    return TallyResult(
        acker=head["acker"],
        ranges=head["ranges"],
        complete=np.unpackbits(packed, count=head["complete"]).astype(np.bool_),
        open_roots=opened,
        open_vals=vals,
        late=Entries(late_roots, late_deltas),
        resets=resets,
        failed=unpack_failed(packet.parts[9:]),
        held=HeldRoots(held, np.frombuffer(packet.parts[7], np.int32)),
    )
