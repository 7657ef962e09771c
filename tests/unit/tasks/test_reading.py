"""The read stage: one bad message fails alone, and what is not there is missed."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm import (
    EXPIRED,
    BasicBolt,
    BasicCollector,
    ComponentError,
    Config,
    CustomGrouping,
    Messages,
    PartitionedSpout,
    Split,
    Spout,
    SpoutConnectionError,
    Stream,
    TopologyBuilder,
    Tuple,
    Unreadable,
)
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import make_column
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body, Kind, Packet, PacketWriter
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.streams import Field, Outputs, declare
from sparkstorm.tasks.reading.loads import read_loads
from sparkstorm.tasks.reading.splits import read_split
from sparkstorm.tasks.report import Report
from sparkstorm.topology.grouping import Custom, FieldsGrouping, Grouping, Shuffle
from sparkstorm.verdicts import Failure, Reason

FIRST = 1000


class Log(PartitionedSpout):
    """Reads what it was made with."""

    def __init__(self, pieces: Sequence[Any], outputs: Outputs) -> None:
        self.pieces = pieces
        self.outputs = outputs

    def plan(self, limit: int) -> list[Split]:
        return []

    def read(self, split: Split) -> Iterable[Sequence[Any] | None]:
        return self.pieces

    def partition(self, split: Split) -> str:
        return str(split.data.get("of", ""))


class Queue(Spout):
    """Its messages come in a packet."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs

    def next_tuple(self) -> None:
        """Emit nothing."""


class Odd:
    """Looks like a row, until it is read."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise SystemExit("odd")


class Sink(BasicBolt):
    """Reads them."""

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Do nothing."""


class Picky(CustomGrouping):
    """Does not like odd numbers."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        if values[0] % 2:
            raise ValueError("odd")
        return tasks[:1]


def plan_of(spout: Spout | PartitionedSpout, grouping: Grouping, *, ackers: int = 1) -> Plan:
    """A plan of the spout and one bolt."""
    builder = TopologyBuilder()
    builder.set_spout("in", spout)
    declarer = builder.set_bolt("out", Sink(), 2)
    match grouping:
        case FieldsGrouping(fields):
            declarer.fields_grouping("in", fields)
        case Custom(custom):
            declarer.custom_grouping("in", custom)
        case _:
            declarer.shuffle_grouping("in")
    topology = builder.create_topology()
    return make_plan(topology, config=Config(acker_executors=ackers), partitions=1)


def load_of(plan: Plan, **more: Any) -> Load:
    """A load of the spout's only task."""
    task = plan.tasks["in"].start
    given = {"component": "in", "task": task, "stream": "default", "lane": 0, "first": FIRST}
    return Load(**{**given, **more})


def queued(plan: Plan, values: list[Any], **more: Any) -> Load:
    """A load of messages that come in a packet."""
    count = len(values)
    body = Body.encode([make_column(Field("f"), values)], count)
    lineage = Lineage.untracked(count)
    packet = PacketWriter(0).data(stream=0, target=1, body=body, lineage=lineage)
    return load_of(plan, count=count, packet=packet, **more)


def read(
    plan: Plan, load: Load, excluded: Sequence[RootRange] = ()
) -> tuple[dict[int, Any], dict[int, Failure], set[int], Report]:
    """The values sent by root, the notes by root, the roots with an entry, and the report."""
    batch = BatchInfo(number=1, excluded=tuple(excluded))
    sent, [report] = read_loads(plan, 0, [load], batch)
    values: dict[int, Any] = {}
    notes: dict[int, Failure] = {}
    entries: set[int] = set()
    for packet in (Packet.decode(data) for _, data in sent):
        match packet.head.kind:
            case Kind.DATA:
                [column] = packet.columns()
                made = [-len(values) - n for n in range(packet.head.count)]
                roots = packet.lineage().roots.tolist() or made
                values.update(zip(roots, column.to_list(), strict=True))
            case Kind.NOTES:
                notes.update(packet.failed())
            case Kind.ENTRIES:
                entries |= set(packet.entries().roots.tolist())
    return values, notes, entries, report


def rows(*values: Any) -> list[Sequence[Any] | None]:
    """Rows of one value each; None for a position without a message."""
    return [None if value is None else [value] for value in values]


@pytest.mark.parametrize(
    ("values", "grouping", "bad"),
    [
        (["a", ["b"], "c", {}], FieldsGrouping(("f",)), {1, 3}),
        ([2, 3, 4, 5], Custom(Picky()), {1, 3}),
    ],
)
def test_a_message_that_cannot_be_routed_fails_alone(
    values: list[Any], grouping: Grouping, bad: set[int]
) -> None:
    """The others of its load go on; it once took them all with it, again at each retry."""
    plan = plan_of(Queue(["f"]), grouping)
    found, notes, entries, report = read(plan, queued(plan, values))
    assert found == {FIRST + n: value for n, value in enumerate(values) if n not in bad}
    assert set(notes) == {FIRST + n for n in bad}
    assert {note.reason for note in notes.values()} == {Reason.ERROR}
    assert all(note.final for note in notes.values()), "the next try would end alike"
    assert not entries, "nothing completes that was not sent"
    assert report.metrics.emitted == 2
    assert all("a message cannot be sent" in line.text for line in report.lines)


def test_a_batch_may_hold_more_than_four_thousand_loads_of_a_task() -> None:
    """Each numbers its packets by its lane; the 4,097th load once failed the whole job by that."""
    plan = plan_of(Queue(["f"]), Shuffle())
    found, notes, _, _ = read(plan, queued(plan, ["a"], lane=4096))
    assert (found, notes) == ({FIRST: "a"}, {})


def test_an_untracked_message_that_cannot_be_routed_is_told_of() -> None:
    """There is no one to hear fail, so there is a line in the log."""
    plan = plan_of(Queue(["f"]), FieldsGrouping(("f",)))
    found, notes, _, report = read(plan, queued(plan, ["a", ["b"], ["c"]], first=None))
    assert list(found.values()) == ["a"]
    assert notes == {}
    assert len(report.lines) == 2


@pytest.mark.parametrize("values", [("a", 1, None, "d"), ("a", None, 2.5, "d")])
def test_a_value_that_does_not_fit_fails_its_message_alone(values: tuple[Any, ...]) -> None:
    """A partitioned spout declares types too; a position without a message completes."""
    plan = plan_of(Log(rows(*values), "f string"), Shuffle())
    found, notes, entries, _ = read(plan, load_of(plan, count=4, split=Split(count=4)))
    bad = next(n for n, value in enumerate(values) if isinstance(value, int | float))
    assert found == {FIRST: "a", FIRST + 3: "d"}
    assert set(notes) == {FIRST + bad}
    assert "field 'f' is declared string" in notes[FIRST + bad].message
    assert notes[FIRST + bad].final, "the next try would read the same value"
    assert entries == {FIRST + values.index(None)}


def test_each_misfit_is_told_of_its_own_value() -> None:
    """Of a declared type, and of a grouping."""
    plan = plan_of(Log(rows(1, "b", 2.5), "f string"), Shuffle())
    _, notes, _, _ = read(plan, load_of(plan, count=3, split=Split(count=3)))
    assert "got 1 (int)" in notes[FIRST].message
    assert "got 2.5 (float)" in notes[FIRST + 2].message
    plan = plan_of(Queue(["f"]), FieldsGrouping(("f",)))
    _, notes, _, _ = read(plan, queued(plan, [["a"], ["b"]]))
    assert "group by ['a']" in notes[FIRST].message
    assert "group by ['b']" in notes[FIRST + 1].message


def test_a_misfit_keeps_its_root_when_it_is_read_again() -> None:
    """A retry wants some positions only, and numbers them anew."""
    plan = plan_of(Log(rows("a", 1, "c", "d", 2), "f string"), Shuffle())
    split = Split(count=3, only=(1, 3, 4))
    found, notes, _, _ = read(plan, load_of(plan, count=3, split=split))
    assert found == {FIRST + 1: "d"}
    assert set(notes) == {FIRST, FIRST + 2}


def test_an_excluded_message_is_neither_sent_nor_failed() -> None:
    """Its batch failed with it; it gets its verdict as lost."""
    plan = plan_of(Log(rows("a", 1, "c", "d"), "f string"), Shuffle())
    load = load_of(plan, count=4, split=Split(count=4))
    found, notes, entries, _ = read(plan, load, [RootRange(FIRST + 1, 2)])
    assert found == {FIRST: "a", FIRST + 3: "d"}
    assert not notes
    assert not entries


BATCH = pa.record_batch([pa.array(["a", "b", "c"])], ["f"])


@pytest.mark.parametrize(
    ("pieces", "split"),
    [
        (rows("a", "b"), Split(count=3)),
        (rows("a", "b", "c", "d"), Split(count=3)),
        ([], Split(count=1)),
        ([BATCH], Split(count=4)),
        ([BATCH, BATCH], Split(count=5)),
        ([BATCH], Split(count=2, only=(0, 3))),
        (rows("a", None), Split(count=1, only=(2,))),
        (rows("a", "b", "c", "d"), Split(count=3).narrow([0, 1])),
        ([BATCH, BATCH], Split(count=5).narrow([0, 1, 2, 3, 4]).narrow([1])),
    ],
)
def test_a_read_that_is_too_short_or_too_long_fails(pieces: list[Any], split: Split) -> None:
    """A message that was planned and is not there must not pass for one that was processed."""
    plan = plan_of(Log(pieces, "f string"), Shuffle())
    found, notes, entries, report = read(plan, load_of(plan, count=split.count, split=split))
    assert found == {}
    assert not entries
    assert set(notes) == set(range(FIRST, FIRST + split.count))
    assert "yield None for a position that holds none" in notes[FIRST].message
    assert report.metrics.emitted == 0


def test_a_retry_may_read_more_than_it_wants() -> None:
    """The engine picks the wanted positions."""
    plan = plan_of(Log([BATCH, BATCH], "f string"), Shuffle())
    load = load_of(plan, count=2, split=Split(count=2, only=(1, 5)))
    found, notes, entries, _ = read(plan, load)
    assert found == {FIRST: "b", FIRST + 1: "c"}
    assert not notes
    assert not entries


def test_a_retry_may_read_its_whole_split() -> None:
    """It is told of the end of what is wanted, and need not stop there."""
    split = Split(count=6).narrow([0, 1, 5]).narrow([1])
    load = load_of(
        plan := plan_of(Log([BATCH, BATCH], "f string"), Shuffle()), count=1, split=split
    )
    found, notes, *_ = read(plan, load)
    assert (found, notes) == ({FIRST: "b"}, {})


def test_a_read_without_end_fails() -> None:
    """Nobody waits for it, nor for the memory that it takes; its error names the split."""

    class Endless(Log):
        def read(self, split: Split) -> Iterator[Any]:
            while True:
                yield ["a"]

    plan = plan_of(Endless([], "f string"), Shuffle())
    split = Split(count=3, data={"file": "f.txt"})
    notes = read(plan, load_of(plan, count=3, split=split))[1]
    [message] = {why.message for why in notes.values()}
    assert "{'file': 'f.txt'}" in message
    assert "gave 4 messages or more where 3 were planned" in message


@pytest.mark.parametrize("odd", [7, Odd(), [], ["a", "b"]])
def test_a_row_that_is_none_fails_alone(odd: Any) -> None:
    """The other messages of its split go on."""
    plan = plan_of(Log([["a"], odd, ["c"]], "f string"), Shuffle())
    found, notes, *_ = read(plan, load_of(plan, count=3, split=Split(count=3)))
    assert found == {FIRST: "a", FIRST + 2: "c"}
    assert list(notes) == [FIRST + 1]
    assert notes[FIRST + 1].final


def test_what_is_skipped_is_counted_by_partition_if_there_are_any() -> None:
    """For people: to see that a log is compacted, not lost."""
    plan = plan_of(Log([["a"], None, None], "f string"), Shuffle())
    for data, names in (({}, ["skipped"]), ({"of": "p/0"}, ["skipped", "skipped in p/0"])):
        report = read(plan, load_of(plan, count=3, split=Split(count=3, data=data)))[-1]
        assert report.metrics.user == tuple((name, 2.0) for name in names)


def test_nothing_is_tracked_without_ackers() -> None:
    """The values go out, and that is all."""
    plan = plan_of(Log(rows("a", "b"), "f string"), Shuffle(), ackers=0)
    found, notes, entries, _ = read(plan, load_of(plan, count=2, split=Split(count=2)))
    assert sorted(found.values()) == ["a", "b"]
    assert not notes
    assert not entries


def test_a_direct_tuple_for_a_stranger_fails_alone() -> None:
    """It would reach nobody, and its message would look processed."""
    builder = TopologyBuilder()
    builder.set_spout("in", Queue(Stream(["f"], direct=True)))
    builder.set_bolt("out", Sink(), 2).direct_grouping("in")
    plan = make_plan(builder.create_topology(), config=Config(acker_executors=1))
    good = plan.tasks["out"].start
    direct = np.array([good, 999, good + 1], np.int32).tobytes()
    found, notes, _, _ = read(plan, queued(plan, ["a", "b", "c"], direct=direct))
    assert found == {FIRST: "a", FIRST + 2: "c"}
    assert "emit_direct to task 999, but the stream's readers are the tasks" in (
        notes[FIRST + 1].message
    )


class Broken:
    """Can be pickled, but not be read again."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("no number",)


def test_a_message_that_cannot_be_read_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks that were picked for the others stay theirs."""
    monkeypatch.setattr("sparkstorm.packets.columns._readable", lambda values, data: data)
    builder = TopologyBuilder()
    builder.set_spout("in", Queue(Stream(["f"], direct=True)))
    builder.set_bolt("out", Sink(), 2).direct_grouping("in")
    plan = make_plan(builder.create_topology(), config=Config(acker_executors=1))
    one = plan.tasks["out"].start
    direct = np.array([one, one, one + 1], np.int32).tobytes()
    load = queued(plan, ["a", Broken(), "c"], direct=direct)
    found, notes, _, _ = read(plan, load)
    assert found == {FIRST: "a", FIRST + 2: "c"}
    assert notes[FIRST + 1].message.startswith("field 'f': ValueError: invalid literal")
    sent, _ = read_loads(plan, 0, [load], BatchInfo(number=1))
    packets = [Packet.decode(data) for _, data in sent]
    targets = {p.head.target: p.count for p in packets if p.head.kind is Kind.DATA}
    assert targets == {one: 1, one + 1: 1}


HOLES = Messages(
    positions=[1, 1, 4],
    columns={"f": ["b", "bb", "e"]},
    unfit={2: EXPIRED, 5: Unreadable("not JSON")},
)
"""Of six positions, 0 and 3 hold nothing, and 1 is a message of two tuples."""


def test_messages_are_found_by_their_positions() -> None:
    """Holes complete, the unfit fail for good, and several tuples belong to one message."""
    plan = plan_of(Log([HOLES], "f string"), Shuffle())
    found, notes, entries, report = read(plan, load_of(plan, count=6, split=Split(count=6)))
    assert set(found) == {FIRST + 1, FIRST + 4}
    assert report.metrics.emitted == 3
    assert report.metrics.user == (("skipped", 2.0),)
    assert entries == {FIRST, FIRST + 3}
    why = {root - FIRST: note for root, note in notes.items()}
    assert {place: (f.reason, f.message, f.final) for place, f in why.items()} == {
        2: (Reason.EXPIRED, "the source no longer has the message", True),
        5: (Reason.ERROR, "not JSON", True),
    }


def test_a_retry_picks_from_messages_by_their_positions() -> None:
    """What it did not ask for may be there, too."""
    plan = plan_of(Log([HOLES], "f string"), Shuffle())
    split = Split(count=3, only=(0, 4, 5))
    found, notes, entries, _ = read(plan, load_of(plan, count=3, split=split))
    assert found == {FIRST + 1: "e"}
    assert entries == {FIRST}
    assert set(notes) == {FIRST + 2}


def test_one_bad_tuple_fails_its_message_whole() -> None:
    """The other tuples of the message are not sent: it would look half processed."""
    messages = Messages(positions=[0, 0, 1], columns={"f": ["a", 1, "b"]})
    plan = plan_of(Log([messages], "f string"), Shuffle())
    found, notes, _, _ = read(plan, load_of(plan, count=2, split=Split(count=2)))
    assert found == {FIRST + 1: "b"}
    assert set(notes) == {FIRST}


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5), st.just("no number")), max_size=12),
    st.lists(st.integers(0, 12), max_size=4),
)
def test_pieces_change_nothing(values: list[Any], cuts: list[int]) -> None:
    """Another run may get other pieces from its source, and must send the same bytes."""
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    pieces = [
        Messages(positions=range(start, stop), columns={"f": values[start:stop]})
        for start, stop in pairwise(bounds)
    ]
    whole = Messages(positions=range(len(values)), columns={"f": values})
    sent = []
    for read_by_source in ([whole], pieces):
        plan = plan_of(Log(read_by_source, "f long"), Shuffle())
        load = load_of(plan, count=len(values), split=Split(count=len(values)))
        sent.append(read_loads(plan, 0, [load], BatchInfo(number=1))[0])
    assert sent[0] == sent[1]


class Text(str):
    """Text that a weak reference can tell about."""


class Endless(Log):
    """Reads piece after piece, and notes how many texts are alive."""

    def __init__(self) -> None:
        super().__init__([], "f string")
        self.alive: list[int] = []

    def read(self, split: Split) -> Iterable[Any]:
        texts = WeakSet[Text]()
        for number in range(split.count):
            yield Messages(positions=[number], columns={"f": [noted(Text(number), texts)]})
            self.alive.append(len(texts))


def noted(text: Text, texts: "WeakSet[Text]") -> Text:
    texts.add(text)
    return text


def test_typed_values_are_encoded_as_they_come() -> None:
    """The objects of a whole split would fall out of the processor's caches."""
    spout = Endless()
    _, rows, _ = read_split(spout, Split(count=20), declare(spout.outputs)["default"])
    assert len(rows) == 20
    assert max(spout.alive) <= 2


def test_messages_behind_the_split_are_refused() -> None:
    """They were not planned, so they would be processed twice."""
    plan = plan_of(Log([HOLES], "f string"), Shuffle())
    _, notes, _, _ = read(plan, load_of(plan, count=4, split=Split(count=4)))
    assert "behind the 4 that were planned" in notes[FIRST].message


def test_a_row_of_another_length_fails_alone() -> None:
    """It can never be emitted, so it is not tried again."""
    plan = plan_of(Log([["a"], ["b", "c"]], "f string"), Shuffle())
    found, notes, _, _ = read(plan, load_of(plan, count=2, split=Split(count=2)))
    assert found == {FIRST: "a"}
    assert notes[FIRST + 1].message == "it has 2 values, not 1: ['b', 'c']"
    assert notes[FIRST + 1].final


class Away(Log):
    """Its source does not answer."""

    def read(self, split: Split) -> Iterable[Sequence[Any] | None]:
        raise SpoutConnectionError("nobody there")


def test_a_source_that_is_away_is_not_the_fault_of_its_messages() -> None:
    """That attempt does not count."""
    plan = plan_of(Away([], "f string"), Shuffle())
    _, notes, _, _ = read(plan, load_of(plan, count=2, split=Split(count=2)))
    assert not notes[FIRST].counted
    assert not notes[FIRST].final


@pytest.mark.parametrize(
    ("spout", "error"),
    [
        (Away([], "f string"), SpoutConnectionError),
        (Log(rows("a"), "f string"), ComponentError),
    ],
)
def test_an_untracked_split_that_cannot_be_read_fails_the_job(
    spout: Log, error: type[Exception]
) -> None:
    """It once passed for one that was read, and its source was told of an ack."""
    plan = plan_of(spout, Shuffle(), ackers=0)
    load = load_of(plan, count=2, split=Split(count=2), first=None)
    with pytest.raises(error, match="spout 'in' cannot read"):
        read(plan, load)
