"""The last stage: each acker task merges the contributions to its roots, and tells the driver."""

import json
from collections.abc import Iterable

import numpy as np

from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import HeldRoots, Tally, TallyResult
from sparkstorm.errors import InternalError
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.failures import pack_failed, unpack_failed
from sparkstorm.packets.packet import DRIVER, Kind, Packet, PacketWriter, read_head
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.dispatch import Delivery

__all__ = ["decode_result", "encode_result", "run_ackers"]


def run_ackers(
    plan: Plan, partition: int, packets: Iterable[bytes], batch: BatchInfo
) -> list[Delivery]:
    """Run the acker tasks of a partition, also those without any packet."""
    tallies = {
        task: Tally(batch.ranges, acker, len(plan.ackers), excluded=batch.excluded)
        for acker, task in enumerate(plan.ackers)
        if plan.home(task) == partition
    }
    out: list[Delivery] = []
    # The first failure of a root counts, so the order must not be Spark's.
    for data in sorted(packets, key=lambda data: read_head(data).order):
        packet = Packet.decode(data)
        # Taps and faults pass through the last stage on their way to the driver.
        if packet.head.target == DRIVER:
            out.append((partition, data))
        elif packet.head.target in tallies:
            _take(tallies[packet.head.target], packet)
        else:
            raise InternalError(f"a packet for task {packet.head.target} reached the ackers")
    for task, tally in tallies.items():
        parts = encode_result(tally.result())
        out.append((partition, PacketWriter(task).for_driver(Kind.OUTCOME, parts)))
    return out


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
