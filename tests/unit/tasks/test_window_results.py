"""Results of many tuples: what they cost does not grow with results times tuples."""

import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest

import sparkstorm as ss
from sparkstorm.acking.anchors import MANY_ROOTS
from sparkstorm.acking.groves import Groves
from sparkstorm.acking.ids import make_root
from sparkstorm.packets.packet import Kind, Packet, PacketWriter, read_head
from sparkstorm.tasks.dispatch import _PACKET_BYTES, _cut_groves
from sparkstorm.testing import FixedSpout, LocalRunner

_HEAD_BYTES = 1_000
"""What a packet may have beside its tuples: the head, and the heads of its columns."""


class Gather(ss.Bolt):
    """Emits results of all its input in lists of so many, at the end of the batch."""

    outputs = "n long"
    transient = ("held",)

    def __init__(self, size: int, results: int) -> None:
        self.size = size
        self.results = results
        self.held: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        """Keep it until the end of the batch."""
        self.held.append(tup)

    def finish_batch(self) -> None:
        """Emit, and ack all."""
        for start in range(0, len(self.held), self.size):
            for number in range(self.results):
                self.collector.emit([number], anchors=self.held[start : start + self.size])
        for tup in self.held:
            self.collector.ack(tup)
        self.held = []


class Sink(ss.BasicBolt):
    """The end."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Ack it."""


def run(bolt: ss.Bolt, tuples: int, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Run a bolt on so many tuples in one batch; return the packets between it and the ackers."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", FixedSpout([[n] for n in range(tuples)], "n long"))
    builder.set_bolt("gather", bolt).global_grouping("numbers")
    builder.set_bolt("sink", Sink(), parallelism=2).shuffle_grouping("gather")
    config = ss.Config(
        batch_min_messages=tuples,
        batch_max_messages=tuples,
        max_spout_pending=tuples,
        acker_executors=2,
    )
    seen: dict[bytes, None] = {}
    with LocalRunner(builder.create_topology(), config=config) as runner:
        run_stage: Callable[..., Mapping[int, list[bytes]]] = cast("Any", runner._jobs)._run_stage

        def watched(*args: Any) -> Mapping[int, list[bytes]]:
            moved = run_stage(*args)
            seen.update(dict.fromkeys(data for box in moved.values() for data in box))
            return moved

        monkeypatch.setattr(type(runner._jobs), "_run_stage", lambda _, *args: watched(*args))
        bolts = {*runner.plan.tasks["gather"], *runner.plan.tasks["sink"]}
        assert runner.run_until_idle().acked == tuples
    monkeypatch.undo()
    return [data for data in seen if read_head(data).source in bolts]


@pytest.mark.sweep
def test_twice_the_results_are_not_twice_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result costs as much as any tuple; the roots of all are sent once to each task."""
    sizes = []
    for results in (100, 200, 400):
        packets = run(Gather(3_000, results), 3_000, monkeypatch)
        sizes.append(sum(map(len, packets)))
    assert sizes[1] - sizes[0] < 100 * 50
    assert sizes[2] - sizes[1] < 200 * 50


@pytest.mark.sweep
def test_twenty_times_the_results_take_about_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the processor's seconds, tuples of the window included."""
    spent = []
    for results in (10, 200, 10, 200):
        started = time.process_time()
        run(Gather(5_000, results), 5_000, monkeypatch)
        spent.append(time.process_time() - started)
    assert min(spent[1::2]) < 3 * min(spent[0::2])


@pytest.mark.sweep
def test_packets_of_large_windows_are_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that tell of the window's roots."""
    packets = run(Gather(20_000, 200), 20_000, monkeypatch)
    kinds = [read_head(data).kind for data in packets]
    assert {Kind.DATA, Kind.GROVES, Kind.ENTRIES} <= {*kinds}
    assert max(map(len, packets)) <= _PACKET_BYTES + _HEAD_BYTES


def test_packets_of_small_windows_are_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their results name each root: several hundred bytes a result."""
    packets = run(Gather(MANY_ROOTS - 1, 100), 40 * (MANY_ROOTS - 1), monkeypatch)
    heads = map(read_head, packets)
    assert sum(head.count for head in heads if head.kind is Kind.DATA) == 4_000
    assert max(map(len, packets)) <= _PACKET_BYTES + _HEAD_BYTES
    assert sum(map(len, packets)) > 2 * _PACKET_BYTES


@pytest.mark.parametrize(
    ("step", "bytes_each"), [(1, 1), (300, 2), (1 << 20, 25)], ids=["dense", "sparse", "far"]
)
def test_a_large_grove_is_cut(step: int, bytes_each: int) -> None:
    """However its roots lie, its packets are within the limit, and it comes back whole."""
    roots = np.concatenate(
        [make_root(task, 5) + np.arange(300_000, dtype=np.uint64) * step for task in (1, 2)]
    )
    groves, told, writer = Groves(), Groves(), PacketWriter(4)
    grove = groves.plant(roots)
    cut = _cut_groves(groves.pieces_of(np.array([grove], np.uint64)))
    packets = [writer.groves(2, pieces) for pieces in cut]
    assert max(map(len, packets)) <= _PACKET_BYTES + _HEAD_BYTES
    assert sum(map(len, packets)) <= bytes_each * len(roots) + _HEAD_BYTES * len(packets)
    for data in packets:
        told.learn(4, Packet.decode(data).pieces())
    assert told[grove].tolist() == roots.tolist()


class Moody(Gather):
    """Emits with the same list again after it has acked one of it, and with another of its size."""

    def __init__(self) -> None:
        super().__init__(0, 0)

    def finish_batch(self) -> None:
        """Emit three results, of which the second one is refused."""
        every = list(self.held)
        self.collector.emit([0], anchors=every)
        self.collector.ack(self.held[0])
        with pytest.raises(ss.TrackingError, match="already acked"):
            self.collector.emit([1], anchors=every)
        every.pop(0)
        self.collector.emit([2], anchors=every)
        self.collector.emit([3], anchors=[*every[1:], every[0]])
        for tup in every:
            self.collector.ack(tup)
        self.held = []


def test_a_list_of_anchors_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is remembered, but not its tuples' fate; and the user may change it."""
    packets = run(Moody(), MANY_ROOTS + 8, monkeypatch)
    heads = map(read_head, packets)
    assert sum(head.count for head in heads if head.kind is Kind.DATA) == 3
