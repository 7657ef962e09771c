"""Packets are reproducible: the order in which they arrive changes no byte of what is sent."""

import random
from types import MappingProxyType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.acking.anchors import MANY_ROOTS
from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.packets.packet import Kind, read_head
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import StageKind
from sparkstorm.state.stores import MemoryStore
from sparkstorm.tasks.worker import StageJob, Worker
from sparkstorm.testing import FixedSpout, ManualClock
from tests.tools.word_count import WordCount


class Split(ss.BasicBolt):
    """Splits words; raises for some."""

    outputs = MappingProxyType({"default": "word string", "sizes": ["size"]})

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["text"].split():
            collector.emit([word])
        collector.emit([len(tup["text"])], stream="sizes")
        if len(tup["text"]) % 7 == 6:
            raise ValueError("seven")


class Join(ss.Bolt):
    """Joins everything of the batch; leaves the first tuple open."""

    outputs = ("joined",)
    transient = ("held",)

    def __init__(self) -> None:
        self.held: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        self.held.append(tup)

    def finish_batch(self) -> None:
        for one, other in zip(self.held[1:], self.held[2:], strict=False):
            self.collector.emit([(one[0], other[0])], anchors=[one, other])
        for tup in self.held[1:]:
            self.collector.ack(tup)
        self.held = []


class Rank(Join):
    """Emits results of everything of the batch, and of everything but one; leaves none open."""

    def finish_batch(self) -> None:
        for number in range(6):
            self.collector.emit([number], anchors=self.held[number % 2 :])
        for tup in self.held:
            self.collector.ack(tup)
        self.held = []


class Hold(ss.StatefulBolt):
    """Holds what it gets, as a join over batches would."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.tuples("held").add(0, tup)


class Fail(ss.Bolt):
    """Fails long ones."""

    def execute(self, tup: ss.Tuple) -> None:
        if len(str(tup[0])) > 12:
            self.collector.fail(tup, f"too long: {tup[0]}")
        else:
            self.collector.ack(tup)


def topology(rows: list[list[str]]) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", FixedSpout(rows, "text string"), parallelism=2)
    builder.set_bolt("split", Split(), parallelism=3).shuffle_grouping("lines")
    builder.set_bolt("count", WordCount(), parallelism=2).fields_grouping("split", ["word"])
    joiner = builder.set_bolt("join", Join(), parallelism=2)
    joiner.partial_key_grouping("count", ["word"]).all_grouping("split", "sizes")
    builder.set_bolt("fail", Fail(), parallelism=2).local_or_shuffle_grouping("join")
    return builder.create_topology()


def ranking(rows: list[list[str]]) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", FixedSpout(rows, "text string"), parallelism=2)
    builder.set_bolt("rank", Rank(), parallelism=2).all_grouping("lines")
    builder.set_bolt("again", Rank(), parallelism=2).shuffle_grouping("rank")
    last = builder.set_bolt("hold", Hold(), parallelism=2)
    last.shuffle_grouping("rank").all_grouping("again")
    builder.set_bolt("fail", Fail(), parallelism=2).shuffle_grouping("again")
    return builder.create_topology()


def run(made: ss.Topology, seed: int) -> list[dict[int, list[bytes]]]:
    """Run one batch, each stage on its packets in an order of its own; return what each sent."""
    rng = random.Random(seed)
    plan = make_plan(made, name="t", config=ss.Config(acker_executors=3), partitions=3)
    coordinator = make_coordinator(plan, MemoryFiles(), ManualClock(), run="x")
    coordinator.open(EngineLog())
    for task in coordinator.hosted.values():
        task.open()
        while task.step(1000):
            pass
    assert coordinator.next_batch(0)
    worker, stores, sent = Worker(plan), dict[str, MemoryStore](), []
    boxes: dict[int, list[bytes]] = {}
    for stage in plan.stages:
        moved: dict[int, list[bytes]] = {}
        partitions = list(range(plan.partitions))
        rng.shuffle(partitions)
        for partition in partitions:
            job = StageJob(
                worker=worker,
                stage=stage,
                partition=partition,
                batch=coordinator.info(0),
                attempt=f"attempt {seed}",
                store=lambda name: stores.setdefault(name, MemoryStore()),
            )
            packets = boxes.get(partition, [])
            rng.shuffle(packets)
            loads = coordinator.loads(0).get(partition, []) if stage.kind is StageKind.READ else []
            for home, data in job.run(packets, loads)[0]:
                moved.setdefault(home, []).append(data)
        sent.append({home: sorted(box) for home, box in moved.items()})
        boxes = moved
    return sent


@given(
    st.lists(st.text("ab cd", max_size=20).map(lambda text: [text]), min_size=1, max_size=30),
    st.integers(),
)
@settings(max_examples=settings().max_examples // 3)
def test_order_of_arrival_does_not_matter(rows: Any, seed: int) -> None:
    """Two runs of a batch whose packets arrive in different orders send the same bytes."""
    made = topology(rows)
    assert run(made, seed) == run(made, seed + 1)


@given(st.integers(MANY_ROOTS, 3 * MANY_ROOTS), st.integers())
@settings(max_examples=settings().max_examples // 5)
def test_order_of_arrival_does_not_matter_to_results_of_many(count: int, seed: int) -> None:
    """The same messages are the same grove."""
    made = ranking([[str(number)] for number in range(count)])
    sent = run(made, seed)
    assert sent == run(made, seed + 1)
    kinds = {read_head(data).kind for boxes in sent for box in boxes.values() for data in box}
    assert Kind.GROVES in kinds
