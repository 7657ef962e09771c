"""Anchors: lists of inputs, and the groves that stand for the long ones."""

from collections.abc import Sequence

import numpy as np

from sparkstorm.acking.anchors import MANY_ROOTS, NO_PARENT, Anchors, parent_of_list
from sparkstorm.acking.groves import Groves
from sparkstorm.acking.ids import GROVE
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import settle


def lineage(*tuples: dict[int, int]) -> Lineage:
    """A lineage of tuples, each given as its shares by root."""
    roots = [root for pairs in tuples for root in pairs]
    shares = [share for pairs in tuples for share in pairs.values()]
    offsets = np.cumsum([0, *map(len, tuples)])
    whole = Lineage(np.array(roots, np.uint64), np.array(shares, np.uint64), offsets)
    return whole.simplified()


def singles(count: int) -> Lineage:
    """Tuples of one root each."""
    return lineage(*({root: root + 1_000} for root in range(count)))


def pairs(anchors: Anchors, *parents: int) -> list[tuple[int, int]]:
    """The (position, input) pairs of tuples with these parents."""
    positions, inputs = anchors.of(np.array(parents, np.int64))
    return list(zip(positions.tolist(), inputs.tolist(), strict=True))


def test_a_list_has_a_number_of_its_own() -> None:
    """No input has it, and it is not that of no parent."""
    numbers = [parent_of_list(number) for number in range(5)]
    assert len(set(numbers)) == 5
    assert max(numbers) < NO_PARENT
    assert [parent_of_list(number) for number in numbers] == [0, 1, 2, 3, 4]


def test_short_lists_are_spelled_out() -> None:
    """Beside single parents and none at all."""
    anchors = Anchors.resolve(singles(5), [(3, 4), (0, 1, 2)], Groves(), MANY_ROOTS)
    one, other = parent_of_list(0), parent_of_list(1)
    assert pairs(anchors, 2, one, NO_PARENT, other, one) == [
        (0, 2),
        *((1, 3), (1, 4)),
        *((3, 0), (3, 1), (3, 2)),
        *((4, 3), (4, 4)),
    ]
    assert pairs(anchors, 2, 1) == [(0, 2), (1, 1)]
    assert pairs(anchors, NO_PARENT) == pairs(anchors) == []
    assert len(anchors.inputs) == 5


def test_a_long_list_is_one_input_more() -> None:
    """It has the grove of the list's roots, and no share of them."""
    groves = Groves()
    count = MANY_ROOTS + 3
    lists: Sequence[Sequence[int]] = [(0, 1), range(count), (2, 3), range(1, count)]
    anchors = Anchors.resolve(singles(count), lists, groves, MANY_ROOTS)
    assert [len(groves[grove]) for grove in anchors.inputs.roots[count:].tolist()] == [35, 34]
    assert anchors.inputs.shares[count:].tolist() == [0, 0]
    assert anchors.inputs.is_simple
    assert pairs(anchors, *map(parent_of_list, range(4))) == [
        *((0, 0), (0, 1)),
        (1, count),
        *((2, 2), (2, 3)),
        (3, count + 1),
    ]


def test_a_long_list_of_few_roots_needs_no_grove() -> None:
    """A hundred tuples of the same two roots."""
    groves = Groves()
    inputs = lineage(*({7: 70, 8: number + 1} for number in range(100)))
    anchors = Anchors.resolve(inputs, [range(100)], groves, MANY_ROOTS)
    assert len(groves) == 0
    assert anchors.inputs.pairs_at(100) == ((7, 8), (0, 0))


def test_a_list_of_groves_is_the_grove_of_all_their_roots() -> None:
    """If they are many; a few are named as they are."""
    groves = Groves()
    planted = [groves.plant(np.arange(n, n + 40, dtype=np.uint64)) for n in range(MANY_ROOTS)]
    inputs = lineage(*({grove: 5} for grove in planted))
    anchors = Anchors.resolve(inputs, [range(MANY_ROOTS), (0, 1)], groves, MANY_ROOTS)
    assert groves[int(anchors.inputs.roots[-1])].tolist() == list(range(MANY_ROOTS - 1 + 40))
    assert pairs(anchors, parent_of_list(1)) == [(0, 0), (0, 1)]


def test_the_number_of_pairs_is_known_before() -> None:
    """So packets can be cut by it."""
    inputs = lineage({1: 1}, {1: 2, 2: 3}, {})
    anchors = Anchors.resolve(inputs, [(0, 1)], Groves(), MANY_ROOTS)
    parents = np.array([0, 1, 2, NO_PARENT, parent_of_list(0)])
    found = anchors.pairs(parents)
    assert found is not None
    assert found.tolist() == [1, 2, 0, 0, 3]
    assert (
        Anchors.resolve(singles(2), (), Groves(), MANY_ROOTS).pairs(np.array([0, NO_PARENT]))
        is None
    )


def test_a_child_has_a_share_of_a_root_on_whatever_ways_it_belongs_to_it() -> None:
    """By itself and in two groves: no way cancels out another, or nobody would miss the child."""
    # Given a tuple of a root and two of groves that have it too, all of them held
    groves = Groves()
    near, far = (groves.plant(np.array(roots, np.uint64)) for roots in ([5, 6], [4, 5]))
    inputs = lineage({5: 70}, {near: 80}, {far: 90})
    for ways in ((0, 1), (1, 2), (0, 2), (0, 1, 2)):
        child, anchor = np.zeros(len(ways), np.int64), np.array(ways)
        found = settle(inputs, np.zeros(3, np.bool_), child, anchor, 1, 99).children
        # Then what it has of the root, all in all, is not nothing
        assert sorted(found.roots.tolist()) == sorted(inputs.roots[anchor].tolist())
        assert np.bitwise_xor.reduce(found.shares) != 0


def test_results_of_a_window_carry_nothing_but_ids() -> None:
    """What the window's tuples had goes to the ackers, so that no result is heavier than others."""
    groves = Groves()
    inputs = singles(MANY_ROOTS)
    anchors = Anchors.resolve(inputs, [range(MANY_ROOTS)], groves, MANY_ROOTS)
    child, anchor = anchors.of(np.full(3, parent_of_list(0)))
    acked = np.arange(len(anchors.inputs)) < MANY_ROOTS
    found = settle(anchors.inputs, acked, child, anchor, 3, 99)
    assert found.children.is_simple
    assert set(found.children.roots.tolist()) == {int(anchors.inputs.roots[-1])}
    entries = groves.expand(found.entries)
    sums = dict.fromkeys(range(MANY_ROOTS), int(np.bitwise_xor.reduce(found.children.shares)))
    for root, delta in zip(entries.roots.tolist(), entries.deltas.tolist(), strict=True):
        assert root < GROVE
        sums[root] ^= delta
    assert sums == {root: root + 1_000 for root in range(MANY_ROOTS)}
