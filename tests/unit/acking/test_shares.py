"""Shares: what a task contributes, and what its children carry."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.ids import seeds
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import Entries, Settlement, settle, xor_by_group

TOKEN = 99


def simple(*pairs: tuple[int, int]) -> Lineage:
    """Tuples of one root each, as (root, share)."""
    roots, shares = zip(*pairs, strict=True)
    return Lineage(np.array(roots, np.uint64), np.array(shares, np.uint64))


def multi(*tuples: dict[int, int]) -> Lineage:
    """Tuples of any number of roots, each as its shares by root."""
    parts = [
        Lineage(
            np.array(list(pairs), np.uint64),
            np.array(list(pairs.values()), np.uint64),
            np.array([0, len(pairs)]),
        )
        for pairs in tuples
    ]
    return Lineage.concat([Lineage.untracked(0), *parts])


def run(
    inputs: Lineage, acked: Sequence[bool], anchors: Sequence[Sequence[int]], token: int = TOKEN
) -> Settlement:
    """Settle a task that emits one tuple for each list of anchors."""
    child = [number for number, many in enumerate(anchors) for _ in many]
    anchor = [one for many in anchors for one in many]
    return settle(
        inputs,
        np.array(acked, np.bool_),
        np.array(child, np.int64),
        np.array(anchor, np.int64),
        len(anchors),
        token,
    )


def shares(settlement: Settlement) -> list[dict[int, int]]:
    """The children's shares by root."""
    lineage = settlement.children
    found: list[dict[int, int]] = [{} for _ in range(len(lineage))]
    for pair, owner in enumerate(lineage.owners().tolist()):
        found[owner][int(lineage.roots[pair])] = int(lineage.shares[pair])
    return found


def entries(settlement: Settlement) -> dict[int, int]:
    """The entries by root."""
    found: dict[int, int] = {}
    parts = settlement.entries.roots.tolist(), settlement.entries.deltas.tolist()
    for root, delta in zip(*parts, strict=True):
        found[root] = found.get(root, 0) ^ delta
    return found


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**64 - 1))))
def test_xor_by_group_is_xor_by_group(rows: list[tuple[int, int]]) -> None:
    """Each group has the XOR of its values, in any order; an empty group has 0."""
    groups = np.array([group for group, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.uint64)
    expected = [0] * 6
    for group, value in rows:
        expected[group] ^= value
    assert xor_by_group(groups, values, 6).tolist() == expected


def test_xor_by_group_of_nothing() -> None:
    """No values give zeros; no groups give nothing."""
    none = np.empty(0, np.int64)
    assert xor_by_group(none, np.empty(0, np.uint64), 2).tolist() == [0, 0]
    assert len(xor_by_group(none, np.empty(0, np.uint64), 0)) == 0


def test_an_only_child_inherits_the_share() -> None:
    """The acked tuple's share passes on, and the acker hears nothing."""
    found = run(simple((5, 70)), [True], [[0]])
    assert shares(found) == [{5: 70}]
    assert len(found.entries) == 0


def test_children_share_what_their_parent_had() -> None:
    """The shares of several children XOR to the parent's, and none of them is 0."""
    found = run(simple((5, 70)), [True], [[0], [0], [0]])
    a, b, c = (child[5] for child in shares(found))
    assert a ^ b ^ c == 70
    assert len({a, b, c, 0}) == 4
    assert len(found.entries) == 0


def test_an_acked_tuple_without_children_is_an_entry() -> None:
    """Nobody carries its share, so the acker gets it."""
    assert entries(run(simple((5, 70)), [True], [])) == {5: 70}


def test_a_tuple_neither_acked_nor_anchored_to_contributes_nothing() -> None:
    """It keeps its share."""
    assert entries(run(simple((5, 70)), [False], [])) == {}


def test_a_held_tuple_announces_its_children_to_the_acker() -> None:
    """A child that is lost with all it carries must be missed: its id went another way."""
    found = run(simple((5, 70)), [False], [[0]])
    assert entries(found) == {5: shares(found)[0][5]}


def test_a_child_of_a_held_and_an_acked_tuple_carries_the_acked_share_alone() -> None:
    """Both are of one root; the held one keeps its share."""
    found = run(simple((5, 70), (5, 80)), [True, False], [[0, 1]])
    assert shares(found) == [{5: 70}]
    assert entries(found) == {}


def test_a_child_belongs_to_all_roots_of_its_anchors() -> None:
    """It has a share of each, in ascending order of the roots."""
    found = run(simple((9, 70), (5, 80), (7, 90)), [True, True, False], [[2, 0, 1]])
    assert list(shares(found)[0]) == [5, 7, 9]
    assert shares(found)[0][9] == 70
    assert shares(found)[0][5] == 80
    assert entries(found) == {7: shares(found)[0][7]}


def test_the_same_anchor_twice_counts_once() -> None:
    """So does the same root through two anchors."""
    once = run(simple((5, 70), (5, 80)), [True, True], [[0]])
    twice = run(simple((5, 70), (5, 80)), [True, True], [[0, 0, 1]])
    assert shares(once) == shares(twice) == [{5: 70 ^ 80}]


def test_an_unanchored_child_is_outside_of_every_tree() -> None:
    """It has no share; what there is to say goes to the acker."""
    found = run(simple((5, 70)), [True], [[]])
    assert shares(found) == [{}]
    assert entries(found) == {5: 70}


def test_children_beside_an_unanchored_one_have_their_shares() -> None:
    """The unanchored one in the middle has none."""
    found = run(simple((5, 70), (6, 80)), [True, True], [[0], [], [1]])
    assert shares(found) == [{5: 70}, {}, {6: 80}]


def test_a_child_of_an_untracked_tuple_is_untracked() -> None:
    """Also if other tuples of the task are tracked."""
    found = run(multi({}, {5: 70}), [True, True], [[0], [1]])
    assert shares(found) == [{}, {5: 70}]


def test_untracked_inputs_cost_nothing() -> None:
    """There is neither a share nor an entry."""
    found = run(Lineage.untracked(2), [True, True], [[0], [0, 1], []])
    assert shares(found) == [{}, {}, {}]
    assert len(found.entries) == 0


def test_nothing_in_nothing_out() -> None:
    """A task without input may emit: it is untracked."""
    found = run(Lineage.untracked(0), [], [[]])
    assert (len(found.children), len(found.entries)) == (1, 0)


def test_roots_that_come_in_turn_are_kept_apart() -> None:
    """The inputs of a root need not stand together."""
    found = run(simple((5, 70), (6, 80), (5, 90)), [True, True, True], [[0], [1], [2]])
    assert shares(found) == [{5: 70}, {6: 80}, {5: 90}]


def test_the_same_run_gives_the_same_bytes() -> None:
    """Spark may run a task twice."""
    inputs = multi({5: 70, 6: 80}, {6: 90}, {})
    one, two = (run(inputs, [True, False, True], [[0, 1], [1], [2]]) for _ in range(2))
    assert one.children.shares.tobytes() == two.children.shares.tobytes()
    assert one.entries.deltas.tobytes() == two.entries.deltas.tobytes()


@pytest.mark.parametrize(
    "acked", [[False, False, True], [True, True, False], [True, True, True], [False, True, False]]
)
def test_runs_that_ack_otherwise_share_no_id(acked: list[bool]) -> None:
    """What one run emits cannot be set off against what another one did, though it is the same."""
    inputs = simple((5, 70), (5, 80), (6, 90))
    anchors = [[0], [0], [1], [2], [2], [2]]
    one = run(inputs, [True, False, True], anchors)
    two = run(inputs, acked, anchors)
    assert not set(one.children.shares.tolist()) & set(two.children.shares.tolist())


def test_a_held_run_and_an_acked_run_do_not_make_up_for_a_lost_tuple() -> None:
    """The reader of both runs has two of the three children twice; the third one is missed.

    Before the acked tuples were part of the ids, this tree looked complete.
    """
    # Given a task that acks its input in one run and holds it in another, emitting the same
    inputs = simple((5, int(seeds(np.array([5], np.uint64))[0])))
    acked, held = run(inputs, [True], [[0], [0], [0]]), run(inputs, [False], [[0], [0], [0]])
    val = int(inputs.shares[0])
    # When the acker reads the entries of the second, and of the first two children both are acked
    val ^= entries(held)[5]
    for found in (acked, held):
        val ^= shares(found)[0][5] ^ shares(found)[1][5]
    # Then the third one is missed
    assert val != 0


def test_entries_can_be_counted() -> None:
    """There are none of none."""
    assert len(Entries.none()) == 0
    assert Entries.none().roots.dtype == Entries.none().deltas.dtype == np.uint64
