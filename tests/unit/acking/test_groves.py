"""Groves: roots in common, kept once."""

import numpy as np
import pytest

from sparkstorm.acking.groves import Groves, Pieces, has_groves
from sparkstorm.acking.ids import GROVE, make_root
from sparkstorm.acking.shares import Entries


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def pieces(*named: tuple[int, list[int]]) -> Pieces:
    """Pieces of groves, each with the grove's id."""
    return Pieces(
        u64(*(grove for grove, _ in named)),
        np.array([len(roots) for _, roots in named]),
        u64(*(root for _, roots in named for root in roots)),
    )


def test_the_same_roots_are_the_same_grove() -> None:
    """In every process; other roots are another."""
    one, other = Groves(), Groves()
    assert one.plant(u64(1, 2, 3)) == other.plant(u64(1, 2, 3)) != other.plant(u64(1, 2))
    assert one.plant(u64(1, 2, 3)) == one.plant(u64(1, 2, 3))
    assert (len(one), len(other)) == (1, 2)


def test_an_id_is_larger_than_any_root() -> None:
    """So it can stand where a root does."""
    groves = Groves()
    grove = groves.plant(u64(1, 2))
    last = make_root(32_768, 2**47 - 1)
    assert last < GROVE <= grove < 2**64
    assert has_groves(u64(last, grove))
    assert not has_groves(u64(last))
    assert not has_groves(u64())


def test_what_is_said_of_a_grove_is_said_of_its_roots() -> None:
    """Single roots stay what they are."""
    groves = Groves()
    near, far = groves.plant(u64(1, 2, 3)), groves.plant(u64(3, 9))
    assert groves.roots_of(u64(near, 5, far, near)).tolist() == [1, 2, 3, 5, 9]
    assert groves.roots_of(u64(5, 4, 5)).tolist() == [4, 5]
    expanded = groves.expand(Entries(u64(near, 5, far), u64(70, 80, 90)))
    assert expanded.roots.tolist() == [5, 1, 2, 3, 3, 9]
    assert expanded.deltas.tolist() == [80, 70, 70, 70, 90, 90]
    marks = groves.marked(u64(near, 5, far, 9), lambda roots: roots == 9)
    assert marks.tolist() == [False, False, True, True]


def test_a_task_is_told_of_the_groves_that_its_tuples_name() -> None:
    """Of each once; of none if they name none."""
    groves, told = Groves(), Groves()
    near, far = groves.plant(u64(1, 2, 3)), groves.plant(u64(7, 8))
    assert groves.pieces_of(u64(1, 2)) is None
    found = groves.pieces_of(u64(near, 5, near))
    assert found is not None
    told.learn(4, found)
    assert told.knows(u64(near, far, 5)).tolist() == [True, False, True]
    assert told[near].tolist() == [1, 2, 3]


def test_a_grove_counts_when_all_its_pieces_have_come() -> None:
    """Those of one task: what another sends may be the same pieces, or others."""
    grove = Groves().plant(u64(1, 2, 3, 4))
    told = Groves()
    told.learn(4, pieces((grove, [1, 2])))
    told.learn(5, pieces((grove, [1]), (grove, [2, 3])))
    assert len(told) == 0
    told.learn(4, pieces((grove, [3, 4])))
    told.learn(5, pieces((grove, [4])))
    assert told[grove].tolist() == [1, 2, 3, 4]
    told.learn(6, pieces())


@pytest.mark.parametrize("came", [[[1, 2]], [[1, 2], [1, 2], [3, 4]]], ids=["lost", "doubled"])
def test_a_grove_of_other_roots_than_it_should_have_stays_unknown(came: list[list[int]]) -> None:
    """Its tuples cannot be accounted for."""
    grove, told = Groves().plant(u64(1, 2, 3, 4)), Groves()
    for roots in came:
        told.learn(4, pieces((grove, roots)))
    assert not told.knows(u64(grove)).any()


def test_what_is_packed_twice_is_one_object() -> None:
    """So the state holds the roots once; unpacked, they are what they were."""
    groves, later = Groves(), Groves()
    grove = groves.plant(u64(1, 2, 2**62))
    assert groves.pack(grove) is groves.pack(grove)
    later.unpack(grove, groves.pack(grove))
    assert later[grove].tolist() == [1, 2, 2**62]
    assert later.pack(grove) is groves.pack(grove)
