"""The engine without one of its packets: whatever was in it is missed, and nothing else is."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstorm import BasicBolt, BasicCollector, Bolt, Config, Spout, TopologyBuilder, Tuple
from sparkstorm.acking.anchors import MANY_ROOTS
from sparkstorm.acking.groves import Groves
from sparkstorm.acking.ids import make_root
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import make_column
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body, Kind, Packet, PacketWriter
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.streams import Field
from sparkstorm.tasks.acker import decode_result
from sparkstorm.tasks.worker import StageJob, Worker

COUNT = 60
"""Messages of the batch."""


class Numbers(Spout):
    """The source; its messages are given to the read stage as a load."""

    outputs = "n long"

    def next_tuple(self) -> None:
        """Emit nothing."""


class Multiply(BasicBolt):
    """Emits as many tuples as the number says, in two streams."""

    def __init__(self) -> None:
        self.outputs = {"default": "n long", "aside": ["n"]}

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        for part in range(tup["n"] % 4):
            collector.emit([part])
            if part == 1:
                collector.emit([tup["n"]], stream="aside")


class Join(Bolt):
    """Puts what it gets together in threes, in a tuple anchored to all; acks when it is done."""

    outputs = "n long"

    def prepare(self, *_: object) -> None:
        self.held: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        self.held.append(tup)
        if len(self.held) == 3:
            self.flush()

    def flush(self) -> None:
        """Emit one for all that are held."""
        if self.held:
            self.collector.emit([len(self.held)], anchors=self.held)
        for tup in self.held:
            self.collector.ack(tup)
        self.held.clear()

    def finish_batch(self) -> None:
        self.flush()


class Gather(Join):
    """Puts all it gets together at the end, in several tuples: they share a grove."""

    def flush(self) -> None:
        """Wait for the end of the batch."""

    def finish_batch(self) -> None:
        for number in range(7):
            self.collector.emit([number], anchors=self.held)
        super().flush()


class Sink(BasicBolt):
    """The end of all ways."""

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Do nothing: it is acked."""


def make_topology_plan() -> Plan:
    """Several ways, copies to all, joins, and a chain that stays where it is."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("multiply", Multiply(), 3).shuffle_grouping("numbers")
    builder.set_bolt("near", Sink(), 2).local_or_shuffle_grouping("multiply", "aside")
    join = builder.set_bolt("join", Join(), 2).fields_grouping("multiply", "n")
    join.all_grouping("numbers")
    builder.set_bolt("gather", Gather()).global_grouping("multiply")
    end = builder.set_bolt("end", Sink(), 2)
    end.shuffle_grouping("join").fields_grouping("multiply", "n").shuffle_grouping("gather")
    return make_plan(builder.create_topology(), config=Config(acker_executors=3), partitions=2)


PLAN = make_topology_plan()
RANGE = RootRange(make_root(PLAN.tasks["numbers"].start, 7), COUNT)
BATCH = BatchInfo(number=3, ranges=(RANGE,))


@dataclass
class Meddler:
    """Changes the n-th packet that may be changed; remembers which roots were in it.

    It knows the groves of all packets that it has seen.
    """

    wanted: int
    change: Callable[[bytes], list[bytes]]
    kinds: AbstractSet[Kind] = frozenset({Kind.DATA, Kind.ENTRIES})
    seen: int = 0
    roots: set[int] = field(default_factory=set)
    groves: Groves = field(default_factory=Groves)

    def __call__(self, packets: list[bytes]) -> Iterator[bytes]:
        """Pass the packets on, one of them changed."""
        for data in packets:
            packet = Packet.decode(data)
            if packet.head.kind is Kind.GROVES:
                self.groves.learn(packet.head.source, packet.pieces())
            roots = roots_in(packet, self.groves) if packet.head.kind in self.kinds else set()
            if not roots:
                yield data
                continue
            if self.seen == self.wanted:
                self.roots = roots
                yield from self.change(data)
            else:
                yield data
            self.seen += 1


def roots_in(packet: Packet, groves: Groves) -> set[int]:
    """The roots that a packet has a share or a contribution of, or tells of."""
    match packet.head.kind:
        case Kind.DATA:
            return set(groves.roots_of(packet.lineage().roots).tolist())
        case Kind.ENTRIES:
            return set(packet.entries().roots.tolist())
        case Kind.GROVES:
            return set(packet.pieces().roots.tolist())
    return set()


def load() -> Load:
    """All messages of the batch."""
    body = Body.encode([make_column(Field("n"), list(range(COUNT)))], COUNT)
    packet = PacketWriter(0).data(stream=0, target=1, body=body, lineage=Lineage.untracked(COUNT))
    return Load(
        component="numbers",
        task=PLAN.tasks["numbers"].start,
        stream="default",
        lane=0,
        count=COUNT,
        first=RANGE.first,
        packet=packet,
    )


def run(meddler: Meddler) -> Verdicts:
    """Run the batch through all stages, with the meddler at every exchange."""
    worker = Worker(PLAN)
    boxes: dict[int, list[bytes]] = {}
    for stage in PLAN.stages:
        moved: dict[int, list[bytes]] = {}
        for partition in range(PLAN.partitions):
            job = StageJob(worker=worker, stage=stage, partition=partition, batch=BATCH)
            loads = [load()] if stage.kind is StageKind.READ and not partition else []
            sent, _ = job.run(boxes.get(partition, []), loads)
            for home, data in sent:
                moved.setdefault(home, []).append(data)
        boxes = {home: list(meddler(packets)) for home, packets in moved.items()}
    ledger = Ledger(30.0, 0.0)
    ledger.begin([RANGE])
    results = [decode_result(Packet.decode(data)) for box in boxes.values() for data in box]
    return ledger.settle([RANGE], results, 1.0)


EVERY = set(range(RANGE.first, RANGE.first + COUNT))
UNTOUCHED = Meddler(wanted=-1, change=lambda data: [data])
ALL_ACKED = run(UNTOUCHED)


def test_untouched_all_messages_complete() -> None:
    """There is something to lose: many packets with many roots."""
    assert set(ALL_ACKED.acked.tolist()) == EVERY
    assert UNTOUCHED.seen > 30


@pytest.mark.parametrize(
    "change", [lambda _: [], lambda data: [data, data]], ids=["lost", "doubled"]
)
@settings(max_examples=settings().max_examples // 3)
@given(number=st.integers(0, UNTOUCHED.seen - 1))
def test_a_packet_that_is_lost_or_doubled_is_noticed(
    change: Callable[[bytes], list[bytes]], number: int
) -> None:
    """The messages that had a part in it are lost; all others are acked."""
    meddler = Meddler(number, change)
    verdicts = run(meddler)
    assert meddler.roots
    assert set(verdicts.failed) == meddler.roots
    assert set(verdicts.acked.tolist()) == EVERY - meddler.roots


GROVES = Meddler(wanted=-1, change=lambda data: [data], kinds={Kind.GROVES})
run(GROVES)


@pytest.mark.parametrize("number", range(GROVES.seen))
def test_a_packet_of_groves_that_is_lost_loses_what_belongs_to_them(number: int) -> None:
    """Their tuples are left out: nobody could say which messages they stand for."""
    meddler = Meddler(number, lambda _: [], {Kind.GROVES})
    verdicts = run(meddler)
    assert len(meddler.roots) >= MANY_ROOTS
    assert set(verdicts.failed) == meddler.roots


@pytest.mark.parametrize("number", range(GROVES.seen))
def test_a_packet_of_groves_that_comes_twice_changes_nothing(number: int) -> None:
    """It only says what is so."""
    assert set(run(Meddler(number, lambda data: [data] * 2, {Kind.GROVES})).acked.tolist()) == EVERY
