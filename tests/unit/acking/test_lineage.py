"""Lineage: which roots tuples belong to."""

import numpy as np
import pytest

from sparkstorm.acking.lineage import Lineage


def lineage(*tuples: dict[int, int]) -> Lineage:
    """A lineage of tuples, each given as its shares by root."""
    roots = [root for pairs in tuples for root in pairs]
    shares = [share for pairs in tuples for share in pairs.values()]
    offsets = np.cumsum([0, *map(len, tuples)])
    return Lineage(np.array(roots, np.uint64), np.array(shares, np.uint64), offsets)


def tuples_of(lineage: Lineage) -> list[dict[int, int]]:
    """The shares by root of each tuple, read pair by pair."""
    pairs = zip(lineage.roots.tolist(), lineage.shares.tolist(), strict=True)
    found: list[dict[int, int]] = [{} for _ in range(len(lineage))]
    for owner, (root, share) in zip(lineage.owners().tolist(), pairs, strict=True):
        found[owner][root] = share
    return found


SIMPLE = [{1: 10}, {1: 11}, {2: 12}]
MIXED = [{1: 10}, {}, {1: 11, 2: 12, 3: 13}, {3: 14}]
CASES = [SIMPLE, MIXED, [{}], [], [{1: 1, 2: 2}]]


def test_untracked_tuples_have_no_root() -> None:
    """They are counted, and that is all."""
    found = Lineage.untracked(3)
    assert (len(found), found.is_tracked, found.is_simple) == (3, False, False)
    assert found.counts().tolist() == [0, 0, 0]
    assert found.pairs_at(1) == ((), ())


def test_a_lineage_without_offsets_is_simple() -> None:
    """Then each tuple has just one pair."""
    found = lineage(*SIMPLE).simplified()
    assert found.is_simple
    assert found.is_tracked
    assert (len(found), found.counts().tolist()) == (3, [1, 1, 1])
    assert found.pairs_at(2) == ((2,), (12,))


def test_a_tuple_may_have_several_roots() -> None:
    """They come in order, each with its share."""
    found = lineage(*MIXED)
    assert len(found) == 4
    assert found.counts().tolist() == [1, 0, 3, 1]
    assert found.pairs_at(2) == ((1, 2, 3), (11, 12, 13))


@pytest.mark.parametrize("tuples", CASES)
def test_simplified_changes_nothing_but_the_form(tuples: list[dict[int, int]]) -> None:
    """Offsets go exactly if each tuple has one root."""
    found = lineage(*tuples).simplified()
    assert tuples_of(found) == tuples
    assert found.is_simple == all(len(pairs) == 1 for pairs in tuples)
    assert found.simplified() is found


def test_as_many_roots_as_tuples_do_not_make_it_simple() -> None:
    """One tuple with two roots and one with none are two of each, too."""
    found = lineage({1: 10, 2: 11}, {})
    assert not found.simplified().is_simple
    assert tuples_of(found.simplified()) == [{1: 10, 2: 11}, {}]


@pytest.mark.parametrize("tuples", CASES)
def test_concat_of_slices_is_the_whole(tuples: list[dict[int, int]]) -> None:
    """However a lineage is cut in two, the pieces put together are it again."""
    whole = lineage(*tuples)
    for form in (whole, whole.simplified()):
        for cut in range(len(tuples) + 1):
            pieces = [form.slice(0, cut), form.slice(cut, len(tuples))]
            assert tuples_of(pieces[0]) == tuples[:cut]
            assert tuples_of(Lineage.concat(pieces)) == tuples


def test_concat_of_nothing_is_empty() -> None:
    """No parts give no tuples; one part is itself; untracked ones count."""
    part = lineage(*SIMPLE)
    assert len(Lineage.concat([])) == 0
    assert Lineage.concat([part]) is part
    assert tuples_of(Lineage.concat([Lineage.untracked(2), part.simplified()])) == [{}, {}, *SIMPLE]


def test_concat_of_simple_parts_is_simple() -> None:
    """No offsets are made where none are needed."""
    simple = lineage(*SIMPLE).simplified()
    assert Lineage.concat([simple, simple]).is_simple


@pytest.mark.parametrize("tuples", CASES)
def test_pairs_of_finds_the_pairs_of_each_tuple(tuples: list[dict[int, int]]) -> None:
    """Tuples may be asked for in any order, and twice."""
    for form in (lineage(*tuples), lineage(*tuples).simplified()):
        asked = [*reversed(range(len(tuples))), *range(len(tuples))]
        positions, pairs = form.pairs_of(np.array(asked, np.int64))
        found = [
            (position, int(form.roots[pair]), int(form.shares[pair]))
            for position, pair in zip(positions.tolist(), pairs.tolist(), strict=True)
        ]
        assert found == [
            (position, root, share)
            for position, index in enumerate(asked)
            for root, share in tuples[index].items()
        ]


@pytest.mark.parametrize("tuples", CASES)
def test_take_picks_tuples(tuples: list[dict[int, int]]) -> None:
    """The picked tuples keep their pairs, in the order asked for."""
    for form in (lineage(*tuples), lineage(*tuples).simplified()):
        asked = list(reversed(range(len(tuples))))
        assert tuples_of(form.take(np.array(asked, np.int64))) == tuples[::-1]
