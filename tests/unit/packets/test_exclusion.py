"""Tuples of excluded roots are left out of packets that an earlier attempt has written."""

import numpy as np
import pytest

from sparkstorm.acking.groves import Groves
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import ObjectColumn
from sparkstorm.packets.exclusion import leave_out
from sparkstorm.packets.packet import Body, Packet, PacketWriter

ONE_ROOT_EACH = Lineage(np.array([3, 4, 5, 6], np.uint64), np.array([9, 8, 7, 6], np.uint64))
SEVERAL_ROOTS = Lineage(
    np.array([3, 4, 5, 6, 6], np.uint64),
    np.array([1, 2, 3, 4, 5], np.uint64),
    np.array([0, 2, 2, 4, 5]),  # roots 3 and 4; none; 5 and 6; 6
)


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def packet(lineage: Lineage) -> Packet:
    body = Body.encode([ObjectColumn(["a", "b", "c", "d"])], 4)
    return Packet.decode(PacketWriter(7, 5).data(stream=1, target=9, body=body, lineage=lineage))


def without(lineage: Lineage, *excluded: RootRange) -> tuple[list[str], list[list[int]]]:
    """The values and roots that are left."""
    [left], _ = leave_out([packet(lineage)], BatchInfo(number=0, excluded=excluded), Groves())
    assert (left.head.source, left.head.sequence, left.head.target) == (7, 5, 9)
    (column,) = left.columns()
    kept = left.lineage()
    assert left.count == len(column) == len(kept)
    return column.to_list(), [list(kept.pairs_at(index)[0]) for index in range(len(kept))]


def test_packet_without_excluded_roots_is_the_same_one() -> None:
    """Nothing is copied if there is nothing to leave out."""
    whole = packet(ONE_ROOT_EACH)
    batch = BatchInfo(number=0, excluded=(RootRange(100, 5),))
    [left], torn = leave_out([whole], batch, Groves())
    assert (left is whole, len(torn)) == (True, 0)


@pytest.mark.parametrize(
    ("lineage", "excluded", "values", "roots"),
    [
        (ONE_ROOT_EACH, RootRange(4, 2), ["a", "d"], [[3], [6]]),
        (ONE_ROOT_EACH, RootRange(0, 99), [], []),
        (SEVERAL_ROOTS, RootRange(4, 1), ["b", "c", "d"], [[], [5, 6], [6]]),
        (SEVERAL_ROOTS, RootRange(6, 1), ["a", "b"], [[3, 4], []]),
        (SEVERAL_ROOTS, RootRange(3, 4), ["b"], [[]]),
    ],
)
def test_excluded_tuples_go_the_others_stay(
    lineage: Lineage, excluded: RootRange, values: list[str], roots: list[list[int]]
) -> None:
    """A tuple goes if any of its roots is excluded; the others keep values and roots."""
    assert without(lineage, excluded) == (values, roots)


@pytest.mark.parametrize(
    ("excluded", "failed"), [(RootRange(4, 1), [3]), (RootRange(6, 1), [5]), (RootRange(3, 4), [])]
)
def test_other_roots_of_excluded_tuples_fail(excluded: RootRange, failed: list[int]) -> None:
    """Each once, however many tuples were left out; an excluded root is not among them."""
    packets = [packet(SEVERAL_ROOTS)] * 2
    _, torn = leave_out(packets, BatchInfo(number=0, excluded=(excluded,)), Groves())
    assert [(root, why.reason) for root, why in torn.items()] == [(root, "lost") for root in failed]


def test_a_tuple_of_a_grove_goes_with_any_of_its_roots() -> None:
    """The grove stands for its roots; a grove that has not arrived may stand for any."""
    # Given tuples of two groves, one of a root of its own, and one of a grove that nobody knows
    groves, elsewhere = Groves(), Groves()
    near, far = groves.plant(u64(3, 4, 5)), groves.plant(u64(7, 8))
    unknown = elsewhere.plant(u64(9, 10))
    whole = packet(Lineage(u64(near, far, 6, unknown), u64(1, 2, 3, 4)))
    # When a root of the first grove is excluded
    [left], torn = leave_out([whole], BatchInfo(number=0, excluded=(RootRange(4, 1),)), groves)
    # Then its tuple goes, and so does that of the unknown one; the other roots of the first fail
    assert left.columns()[0].to_list() == ["b", "c"]
    assert left.lineage().roots.tolist() == [far, 6]
    assert torn.roots.tolist() == [3, 5]


class Unreadable:
    """Can be pickled, but not be read again."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("no number",)


def test_leaving_out_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that cannot be read may be why its root is excluded; the others are still read."""
    monkeypatch.setattr("sparkstorm.packets.columns._readable", lambda values, data: data)
    body = Body.encode([ObjectColumn(["a", Unreadable(), "c", Unreadable()])], 4)
    data = PacketWriter(7).data(stream=1, target=9, body=body, lineage=ONE_ROOT_EACH)
    batch = BatchInfo(number=0, excluded=(RootRange(4, 1),))
    [left], _ = leave_out([Packet.decode(data)], batch, Groves())
    [column], unread = left.read()
    assert [column.to_list()[0], column.to_list()[1]] == ["a", "c"]
    assert unread == {2: (0, "ValueError: invalid literal for int() with base 10: 'no number'")}
