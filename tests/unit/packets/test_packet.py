"""Packets: what goes in comes out, and the same goes in as the same bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.groves import Groves, Pieces
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import Entries
from sparkstorm.errors import InternalError
from sparkstorm.packets.columns import (
    ArrowColumn,
    Column,
    DictColumn,
    ObjectColumn,
    make_column,
)
from sparkstorm.packets.packet import (
    DRIVER,
    Body,
    Kind,
    Packet,
    PacketWriter,
    Tracking,
    read_head,
)
from sparkstorm.streams import Field
from sparkstorm.verdicts import Failure, Reason

FAILURE = Failure(
    reason=Reason.ERROR,
    component="split",
    task=7,
    message="ValueError: ungültig",
    traceback="Traceback …",
    attempt=3,
)


ROOTS = st.integers(0, 300) | st.integers(0, 2**64 - 1)


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def data(lineage: Lineage, *columns: Column) -> bytes:
    """A DATA packet with these columns."""
    body = Body.encode(columns, len(lineage))
    return PacketWriter(3, sequence=8).data(stream=5, target=9, body=body, lineage=lineage)


def lineages() -> dict[str, tuple[Lineage, Tracking]]:
    """A lineage for each way of tracking."""
    first = make_root(40_000, 2**47 - 3)
    dense = u64(first, first + 1, first + 2)
    offsets = np.array([0, 1, 1, 3])
    return {
        "untracked": (Lineage.untracked(3), Tracking.NONE),
        "seeded": (Lineage(dense, seeds(dense)), Tracking.SEEDED),
        "one seeded": (Lineage(dense[:1], seeds(dense[:1])), Tracking.SEEDED),
        "with gaps": (Lineage(dense[[0, 2]], seeds(dense[[0, 2]])), Tracking.SIMPLE),
        "out of order": (Lineage(dense[[1, 0, 2]], seeds(dense[[1, 0, 2]])), Tracking.SIMPLE),
        "a root twice": (Lineage(u64(1, 1, 3), seeds(u64(1, 1, 3))), Tracking.SIMPLE),
        "other shares": (Lineage(dense, u64(1, 2, 3)), Tracking.SIMPLE),
        "several roots": (Lineage(u64(4, 5, 6), u64(7, 8, 9), offsets), Tracking.MULTI),
    }


@pytest.mark.parametrize(("lineage", "tracking"), lineages().values(), ids=lineages())
def test_a_lineage_comes_back(lineage: Lineage, tracking: Tracking) -> None:
    """In the form that costs least for it."""
    column = ObjectColumn([[n] for n in range(len(lineage))])
    packet = Packet.decode(data(lineage, column))
    found = packet.lineage()
    assert packet.head.tracking is tracking
    assert found.roots.tolist() == lineage.roots.tolist()
    assert found.shares.tolist() == lineage.shares.tolist()
    assert found.counts().tolist() == lineage.counts().tolist()
    assert [one.to_list() for one in packet.columns()] == [column.to_list()]


@given(
    st.lists(st.tuples(ROOTS, ROOTS), min_size=1, max_size=20),
    st.integers(1, 70_000),
)
def test_any_roots_and_words_come_back(pairs: list[tuple[int, int]], words: int) -> None:
    """However far the roots are from each other, and however large a column's dictionary is."""
    roots, shares = u64(*(r for r, _ in pairs)), u64(*(s for _, s in pairs))
    dictionary = pa.array([str(n) for n in range(words)])
    indices = np.linspace(0, words - 1, len(pairs)).astype(np.int32)
    column = DictColumn(dictionary, indices)
    packet = Packet.decode(data(Lineage(roots, shares), column))
    assert packet.lineage().roots.tolist() == roots.tolist()
    assert packet.lineage().shares.tolist() == shares.tolist()
    assert [one.to_list() for one in packet.columns()] == [column.to_list()]
    entries = Packet.decode(PacketWriter(1).entries(2, Entries(roots, shares))).entries()
    assert (entries.roots.tolist(), entries.deltas.tolist()) == (roots.tolist(), shares.tolist())


def test_roots_near_each_other_take_two_bytes() -> None:
    """A packet's roots usually lie within a few thousand."""
    roots = np.sort(make_root(3, 9) + np.arange(2000, dtype=np.uint64) * 7 % 5000)
    lineage = Lineage(roots, roots)
    size = len(data(lineage, ObjectColumn([]))) - len(data(Lineage.untracked(2000)))
    assert size <= 2000 * (2 + 8) + 100


def test_consecutive_seeded_roots_cost_nothing() -> None:
    """What a spout emits to one task carries no numbers at all."""
    roots = np.arange(1000, dtype=np.uint64)
    tracked = len(data(Lineage(roots, seeds(roots)), ObjectColumn([])))
    assert tracked == len(data(Lineage.untracked(1000), ObjectColumn([])))


def test_the_head_says_what_the_packet_is() -> None:
    """It can be read without decoding the rest."""
    head = read_head(data(Lineage.untracked(2)))
    assert (head.kind, head.tracking) == (Kind.DATA, Tracking.NONE)
    assert (head.stream, head.target, head.source, head.sequence) == (5, 9, 3, 8)
    assert (head.count, head.order) == (2, (3, 8))


def test_the_largest_numbers_fit() -> None:
    """The last task's last root, the last lane's last packet."""
    root = make_root(32_768, 2**47 - 1)
    lineage = Lineage(u64(root), seeds(u64(root)))
    writer = PacketWriter(32_768, sequence=2**48 - 1)
    body = Body.encode([], 1)
    packet = Packet.decode(writer.data(stream=65_535, target=32_768, body=body, lineage=lineage))
    assert packet.head.order == (32_768, 2**48 - 1)
    assert packet.lineage().roots.tolist() == [root]


def test_packets_of_a_task_are_numbered() -> None:
    """So they can be put back into the order in which they were sent."""
    writer = PacketWriter(4)
    packets = [writer.entries(2, Entries(u64(1), u64(2))) for _ in range(3)]
    assert [read_head(packet).order for packet in packets] == [(4, 0), (4, 1), (4, 2)]


def test_entries_come_back() -> None:
    """Roots and deltas, for an acker."""
    packet = Packet.decode(PacketWriter(4).entries(2, Entries(u64(1, 2**64 - 1), u64(3, 0))))
    assert (packet.head.kind, packet.head.target, packet.head.count) == (Kind.ENTRIES, 2, 2)
    assert packet.entries().roots.tolist() == [1, 2**64 - 1]
    assert packet.entries().deltas.tolist() == [3, 0]


def test_the_same_contribution_to_many_roots_is_sent_once() -> None:
    """As a grove's is; others beside it come back, too."""
    roots = np.arange(2_000, dtype=np.uint64)
    deltas = np.where(roots < 1_500, np.uint64(2**64 - 1), np.where(roots < 1_501, 5, roots))
    same = PacketWriter(4).entries(2, Entries(roots[:1_500], deltas[:1_500]))
    assert len(same) < 1_500 * 2 + 100
    for start in (0, 1_400, 1_500):
        sent = PacketWriter(4).entries(2, Entries(roots[start:], deltas[start:]))
        found = Packet.decode(sent).entries()
        assert found.roots.tolist() == roots[start:].tolist()
        assert found.deltas.tolist() == deltas[start:].tolist()


@given(st.lists(st.lists(ROOTS, min_size=1, max_size=9), min_size=1, max_size=5))
def test_groves_come_back(sets: list[list[int]]) -> None:
    """However far their roots are from each other, and whichever come first."""
    planted = [u64(*sorted(set(roots))) for roots in sets]
    pieces = Pieces(
        np.arange(len(sets), dtype=np.uint64) * 7,
        np.array([len(roots) for roots in planted]),
        np.concatenate(planted),
    )
    packet = Packet.decode(PacketWriter(4).groves(2, pieces))
    found = packet.pieces()
    assert (packet.head.kind, packet.head.target, packet.head.count) == (Kind.GROVES, 2, len(sets))
    assert found.ids.tolist() == pieces.ids.tolist()
    assert found.counts.tolist() == pieces.counts.tolist()
    assert found.roots.tolist() == pieces.roots.tolist()


def test_a_packet_knows_whether_it_names_groves() -> None:
    """Most do not, and nobody has to look into them."""
    grove = Groves().plant(u64(1, 2))
    for roots, names in ((u64(1, 2), False), (u64(1, grove), True)):
        assert Packet.decode(data(Lineage(roots, u64(3, 4)))).names_groves is names
        several = Lineage(roots, u64(3, 4), np.array([0, 2]))
        assert Packet.decode(data(several)).names_groves is names
    assert not Packet.decode(data(Lineage.untracked(3))).names_groves


@pytest.mark.parametrize("kind", [Kind.HOLD, Kind.RESET])
def test_roots_come_back(kind: Kind) -> None:
    """Those that are held, and those whose time-out starts anew."""
    packet = Packet.decode(PacketWriter(4).roots(kind, 2, u64(5, 6)))
    assert packet.head.kind is kind
    assert packet.roots().tolist() == [5, 6]


def test_notes_come_back() -> None:
    """With everything that is known of the failure."""
    failed = FailedRoots.of({2**62: FAILURE, 3: Failure(reason=Reason.FAILED), 4: FAILURE})
    packet = Packet.decode(PacketWriter(4).notes(2, failed))
    assert (packet.head.kind, packet.head.count) == (Kind.NOTES, 3)
    assert packet.failed() == failed


@pytest.mark.parametrize("kind", [Kind.FATAL, Kind.OUTCOME])
def test_what_is_for_the_driver_comes_back(kind: Kind) -> None:
    """Parts of any length, none included."""
    packet = Packet.decode(PacketWriter(4).for_driver(kind, [b"fault", b"", b"12345678"]))
    assert (packet.head.kind, packet.head.target) == (kind, DRIVER)
    assert [bytes(part) for part in packet.parts] == [b"fault", b"", b"12345678"]
    assert packet.payload() == b"fault"


def columns() -> Sequence[tuple[str, list[Any]]]:
    """Columns of every encoding."""
    return [
        ("arrow", ["a", None, "c"] * 30),
        ("dictionary", ["a", "b", "c"] * 30),
        ("pickle", [1, "a", None] * 30),
    ]


def test_columns_of_every_encoding_stand_side_by_side() -> None:
    """And behind every kind of lineage."""
    lists = [values for _, values in columns()]
    made = [make_column(Field("f"), list(values), repeats=True) for values in lists]
    roots = np.arange(90, dtype=np.uint64)
    for lineage in (
        Lineage.untracked(90),
        Lineage(roots, seeds(roots)),
        Lineage(roots, roots),
        Lineage(roots, roots, np.minimum(np.arange(91), 90)),
    ):
        found = Packet.decode(data(lineage, *made)).columns()
        assert [column.to_list() for column in found] == lists


@pytest.mark.parametrize(("name", "values"), columns(), ids=[name for name, _ in columns()])
def test_the_same_values_give_the_same_bytes(name: str, values: list[Any]) -> None:
    """Spark compares the output of a task that it runs again."""
    one, other = (
        data(Lineage.untracked(90), make_column(Field("f"), list(given), repeats=True))
        for given in (values, [value and str(value) + "" for value in values])
    )
    same_types = name != "pickle"
    assert (one == other) == same_types
    assert one == data(Lineage.untracked(90), make_column(Field("f"), values, repeats=True))


def test_a_slice_is_sent_without_its_surroundings() -> None:
    """Of a large array, only the rows that go to the task."""
    array = pa.array(["x" * 1000] * 1000)
    assert len(data(Lineage.untracked(1), ArrowColumn(array).slice(500, 501))) < 2000


def test_a_stream_without_fields_has_tuples() -> None:
    """They are counted by the head."""
    packet = Packet.decode(data(Lineage.untracked(3)))
    assert (packet.head.count, packet.columns()) == (3, [])


def test_arrays_are_aligned_for_arrow() -> None:
    """Its buffers start at multiples of eight bytes within the packet."""
    packet = data(Lineage.untracked(2), ArrowColumn(pa.array([1, 2])))
    [column] = Packet.decode(packet).columns()
    assert isinstance(column, ArrowColumn)
    base = pa.py_buffer(packet).address
    assert (column.array.buffers()[1].address - base) % 8 == 0


def test_a_packet_of_another_version_is_refused() -> None:
    """A worker that runs other code than the driver is a fault of ours."""
    packet = bytearray(data(Lineage.untracked(1)))
    packet[0] += 1
    with pytest.raises(InternalError, match="a packet of version 2 came in; this is 1"):
        read_head(bytes(packet))


def test_a_body_knows_its_size() -> None:
    """So that large ones can be cut."""
    assert Body(1, [b"abc", b"defg"]).nbytes == 7
