"""The last stage: what its packets say is what the driver decodes."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm import Config, Spout, TopologyBuilder
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootRange, Tally, TallyResult
from sparkstorm.errors import InternalError
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.packet import Body, Kind, Packet, PacketWriter, read_head
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.acker import decode_result, run_ackers
from sparkstorm.verdicts import Failure, Reason

FAILURE = Failure(reason=Reason.ERROR, component="a", task=4, message="ü", traceback="t", attempt=2)


class Nothing(Spout):
    """A source."""

    outputs = "x"

    def next_tuple(self) -> None:
        """Emit nothing."""


def make(ackers: int, partitions: int) -> Plan:
    """A plan with these many ackers, whose tasks are the first ones."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Nothing())
    config = Config(acker_executors=ackers)
    return make_plan(builder.create_topology(), config=config, partitions=partitions)


PLAN = make(3, 2)


def u64(values: Iterable[int]) -> np.ndarray:
    """Values as ids."""
    return np.array(list(values), np.uint64)


def assert_equal(one: TallyResult, other: TallyResult) -> None:
    """All fields, array by array."""
    assert (one.acker, one.failed) == (other.acker, other.failed)
    assert one.complete.tolist() == other.complete.tolist()
    assert one.open_roots.tolist() == other.open_roots.tolist()
    assert one.open_vals.tolist() == other.open_vals.tolist()
    assert one.late.roots.tolist() == other.late.roots.tolist()
    assert one.late.deltas.tolist() == other.late.deltas.tolist()
    assert one.resets.tolist() == other.resets.tolist()
    assert one.held.roots.tolist() == other.held.roots.tolist()
    assert (one.ranges, one.held.holders.tolist()) == (other.ranges, other.held.holders.tolist())


ids = st.integers(0, 2**64 - 1)
roots = st.lists(st.integers(0, 60), max_size=10)


@given(
    counts=st.lists(st.integers(0, 20), max_size=4),
    complete=roots,
    entries=st.lists(st.tuples(st.integers(0, 60), ids), max_size=10),
    held=roots,
    resets=roots,
    failed=roots,
)
def test_a_result_comes_back_from_its_packet(
    counts: list[int],
    complete: list[int],
    entries: list[tuple[int, int]],
    held: list[int],
    resets: list[int],
    failed: list[int],
) -> None:
    """Whatever is in it, for one acker that has all roots."""
    plan = make(1, 1)
    starts = np.cumsum([0, *counts[:-1]]).tolist() if counts else []
    ranges = [RootRange(start, count) for start, count in zip(starts, counts, strict=True)]
    entries = [*entries, *((root, int(seeds(u64([root]))[0])) for root in complete)]
    tally = Tally(ranges, 0, 1)
    tally.add(Entries(u64(r for r, _ in entries), u64(d for _, d in entries)))
    tally.hold(u64(held), 9)
    tally.reset_timeout(u64(resets))
    for root in failed:
        tally.fail(FailedRoots.of({root: FAILURE}))
    writer = PacketWriter(9)
    packets = [
        writer.entries(1, Entries(u64(r for r, _ in entries), u64(d for _, d in entries))),
        writer.roots(Kind.HOLD, 1, u64(held)),
        writer.roots(Kind.RESET, 1, u64(resets)),
        writer.notes(1, FailedRoots.of(dict.fromkeys(failed, FAILURE))),
    ]
    [(partition, data)], _ = run_ackers(plan, 0, packets, BatchInfo(number=1, ranges=tuple(ranges)))
    assert (partition, read_head(data).kind) == (0, Kind.OUTCOME)
    assert_equal(decode_result(Packet.decode(data)), tally.result())


def test_every_acker_of_a_partition_answers() -> None:
    """Also one that nothing came in for: else its roots would be missed."""
    batch = BatchInfo(number=1, ranges=(RootRange(make_root(4, 0), 5),))
    answers = [run_ackers(PLAN, partition, [], batch)[0] for partition in range(2)]
    results = [decode_result(Packet.decode(data)) for sent in answers for _, data in sent]
    assert sorted(result.acker for result in results) == [0, 1, 2]
    assert [partition for partition, sent in enumerate(answers) for _ in sent] == [0, 1, 1]
    assert not any(result.complete.any() for result in results)


def test_the_order_of_arrival_does_not_matter() -> None:
    """The first reason of a failure is that of the first packet, not of the first to come."""
    batch = BatchInfo(number=1, ranges=(RootRange(6, 1),))
    other = Failure(reason=Reason.FAILED)
    task = PLAN.ackers[0]
    packets = [
        PacketWriter(8, 1).notes(task, FailedRoots.of({6: other})),
        PacketWriter(8, 0).notes(task, FailedRoots.of({6: FAILURE})),
    ]
    for arrived in (packets, packets[::-1]):
        [*_, (_, data)] = run_ackers(PLAN, PLAN.home(task), arrived, batch)[0]
        assert read_head(data).kind is Kind.OUTCOME
        found = [
            decode_result(Packet.decode(data)).failed
            for _, data in run_ackers(PLAN, PLAN.home(task), arrived, batch)[0]
        ]
        assert {6: FAILURE} in found


def test_what_is_for_the_driver_passes_through() -> None:
    """Tapped tuples, and faults."""
    fault = PacketWriter(5).for_driver(Kind.FATAL, [b"fault"])
    sent, _ = run_ackers(make(1, 1), 0, [fault], BatchInfo(number=1))
    assert sent[0] == (0, fault)
    assert len(sent) == 2


def test_a_packet_for_another_task_is_a_fault_of_ours() -> None:
    """It was sent to the wrong partition."""
    packet = PacketWriter(5).roots(Kind.HOLD, 2, u64([1]))
    with pytest.raises(InternalError, match="a packet for task 2 reached the ackers"):
        run_ackers(PLAN, PLAN.home(1), [packet], BatchInfo(number=1))


def test_tuples_are_nothing_for_an_acker() -> None:
    """Only what the engine sends itself."""
    body = Body.encode([], 1)
    packet = PacketWriter(5).data(stream=0, target=1, body=body, lineage=Lineage.untracked(1))
    with pytest.raises(InternalError, match="an acker cannot take a packet of kind DATA"):
        run_ackers(PLAN, PLAN.home(1), [packet], BatchInfo(number=1))
