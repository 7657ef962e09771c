"""The tally: one acker, one batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import seeds
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootIndex, RootRange, Tally, TallyResult, locate
from sparkstorm.verdicts import Failure, Reason

FIRST = Failure(reason=Reason.FAILED, message="first")
SECOND = Failure(reason=Reason.ERROR, message="second")


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def seed(root: int) -> int:
    """The seed of one root."""
    return int(seeds(u64(root))[0])


def entries(*pairs: tuple[int, int]) -> Entries:
    """Contributions, as (root, delta)."""
    return Entries(u64(*(root for root, _ in pairs)), u64(*(delta for _, delta in pairs)))


def complete(result: TallyResult) -> list[bool]:
    """The marks of the acker's roots."""
    marks: list[bool] = result.complete.tolist()
    return marks


@given(first=st.integers(0, 50), count=st.integers(0, 20), ackers=st.integers(1, 6), data=st.data())
def test_each_root_of_a_range_has_one_acker(
    first: int, count: int, ackers: int, data: st.DataObject
) -> None:
    """The parts of all ackers make up the range, and an acker has root mod ackers."""
    acker = data.draw(st.integers(0, ackers - 1))
    mine = RootIndex([RootRange(first, count)], acker, ackers).roots().tolist()
    assert mine == [root for root in range(first, first + count) if root % ackers == acker]


@pytest.mark.parametrize(
    ("ranges", "root", "where"),
    [
        ([], 5, -1),
        ([(5, 2)], 4, -1),
        ([(5, 2)], 5, 0),
        ([(5, 2)], 6, 0),
        ([(5, 2)], 7, -1),
        ([(5, 2), (9, 1)], 8, -1),
        ([(5, 2), (9, 1)], 9, 1),
        ([(5, 0), (5, 2)], 5, 1),
        ([(5, 2), (7, 0), (9, 1)], 7, -1),
    ],
)
def test_a_root_is_found_in_its_range(ranges: list[tuple[int, int]], root: int, where: int) -> None:
    """Roots between, before and behind the ranges are in none."""
    assert locate([RootRange(*pair) for pair in ranges], u64(root)).tolist() == [where]


def test_without_contributions_nothing_is_complete() -> None:
    """A root that nothing came in for is lost: its seed stays."""
    result = Tally([RootRange(4, 3)], 0, 1).result()
    assert complete(result) == [False, False, False]
    assert len(result.open_roots) == len(result.late) == len(result.resets) == 0
    assert result.failed == {}


def test_a_root_is_complete_when_its_seed_is_acked() -> None:
    """In one piece or in several, which cancel what they have in common."""
    tally = Tally([RootRange(4, 3)], 0, 1)
    tally.add(entries((4, seed(4)), (6, 77)))
    tally.add(entries((6, seed(6)), (6, 77)))
    assert complete(tally.result()) == [True, False, True]


def test_each_acker_marks_its_own_roots() -> None:
    """The marks are of this acker's roots, in order, range by range."""
    tally = Tally([RootRange(10, 1), RootRange(3, 4)], 1, 2)
    tally.add(entries((3, seed(3))))
    assert complete(tally.result()) == [True, False]


def test_a_seed_that_came_twice_is_not_acked() -> None:
    """XOR takes the second one for the first one's withdrawal."""
    tally = Tally([RootRange(4, 1)], 0, 1)
    tally.add(entries((4, seed(4)), (4, seed(4))))
    assert complete(tally.result()) == [False]


def test_a_failure_beats_any_ack_val() -> None:
    """Failed and complete in one batch: failed."""
    tally = Tally([RootRange(4, 2)], 0, 1)
    tally.add(entries((4, seed(4)), (5, seed(5))))
    tally.hold(u64(4))
    tally.fail(FailedRoots.of({4: FIRST}))
    result = tally.result()
    assert complete(result) == [False, True]
    assert result.failed == {4: FIRST}
    assert len(result.open_roots) == 0


def test_the_first_reason_stays() -> None:
    """A second failure of a root says nothing new."""
    tally = Tally([RootRange(4, 1)], 0, 1)
    tally.fail(FailedRoots.of({4: FIRST}))
    tally.fail(FailedRoots.of({4: SECOND}))
    assert tally.result().failed == {4: FIRST}


def test_a_held_root_is_open_with_its_ack_val() -> None:
    """The driver goes on where the batch ended."""
    tally = Tally([RootRange(4, 2), RootRange(9, 1)], 0, 1)
    tally.add(entries((4, 77)))
    tally.hold(u64(4, 4))
    tally.hold(u64(9))
    result = tally.result()
    assert result.open_roots.tolist() == [4, 9]
    assert result.open_vals.tolist() == [seed(4) ^ 77, seed(9)]


def test_a_held_root_that_is_complete_is_complete() -> None:
    """It can only be held by a copy that was delivered twice."""
    tally = Tally([RootRange(4, 1)], 0, 1)
    tally.add(entries((4, seed(4))))
    tally.hold(u64(4))
    result = tally.result()
    assert complete(result) == [True]
    assert len(result.open_roots) == 0


def test_a_held_root_that_is_left_out_is_not_open() -> None:
    """It is lost with the rest of its tree, and its holder is still to be told."""
    tally = Tally([RootRange(4, 3)], 0, 1, excluded=[RootRange(4, 1), RootRange(6, 9)])
    tally.hold(u64(4, 5, 6), holder=8)
    result = tally.result()
    assert result.open_roots.tolist() == [5]
    assert complete(result) == [False, False, False]
    assert result.held.roots.tolist() == [4, 5, 6]
    assert set(result.held.holders.tolist()) == {8}


def test_roots_of_earlier_batches_are_passed_on() -> None:
    """The driver's ledger holds them: contributions, failures and new time-outs."""
    tally = Tally([RootRange(8, 2)], 0, 1)
    tally.add(entries((3, 77), (8, seed(8)), (12, 78)))
    tally.hold(u64(3))
    tally.fail(FailedRoots.of({2: FIRST}))
    tally.reset_timeout(u64(3, 12))
    tally.reset_timeout(u64(3))
    result = tally.result()
    assert result.late.roots.tolist() == [3, 12]
    assert result.late.deltas.tolist() == [77, 78]
    assert result.resets.tolist() == [3, 12]
    assert result.failed == {2: FIRST}
    assert complete(result) == [True, False]
    assert len(result.open_roots) == 0


def test_a_batch_without_roots_has_a_result() -> None:
    """A control batch begins none, but contributions may come in it."""
    tally = Tally([], 2, 3)
    tally.add(entries((5, 77)))
    tally.hold(u64(5))
    result = tally.result()
    assert (result.acker, complete(result)) == (2, [])
    assert result.late.roots.tolist() == [5]
