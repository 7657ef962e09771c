"""Ids: nothing drawn, nothing zero, nothing twice."""

import numpy as np
import pytest

from sparkstorm.acking.ids import (
    child_ids,
    digest,
    make_root,
    mix64,
    seeds,
    sequence_of,
    task_of,
)


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def test_mix64_is_the_finaliser_of_splitmix64() -> None:
    """The first numbers of splitmix64 with seed 0 come out, as its authors publish them."""
    golden = 0x9E3779B97F4A7C15
    states = u64(golden, 2 * golden & (2**64 - 1), 3 * golden & (2**64 - 1))
    assert [hex(n) for n in mix64(states).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_mix64_leaves_its_argument_alone() -> None:
    """The array that is handed in is not changed."""
    values = u64(1, 2, 3)
    mix64(values)
    assert values.tolist() == [1, 2, 3]


def test_seeds_differ_and_are_never_zero() -> None:
    """Each root has a seed of its own, also the one whose mixed number would be zero."""
    zero_before_mixing = 2**64 - 0xD1B54A32D192ED03
    roots = np.append(np.arange(10_000, dtype=np.uint64), np.uint64(zero_before_mixing))
    found = seeds(roots)
    assert len(set(found.tolist())) == len(roots)
    assert 0 not in found.tolist()
    assert found[-1] == 1


def test_a_seed_does_not_depend_on_its_neighbours() -> None:
    """A root has the same seed alone and among others."""
    roots = np.arange(50, dtype=np.uint64)
    assert seeds(roots).tolist() == [int(seeds(roots[i : i + 1])[0]) for i in range(50)]


def test_child_ids_come_from_the_token_and_the_position() -> None:
    """The same token gives the same ids, however many are asked for; another one gives others."""
    assert child_ids(7, 5).tolist() == child_ids(7, 9)[:5].tolist()
    assert not set(child_ids(7, 1000).tolist()) & set(child_ids(8, 1000).tolist())
    assert len(set(child_ids(7, 1000).tolist())) == 1000
    assert 0 not in child_ids(2**64 - 0x9E3779B97F4A7C15, 1).tolist()


@pytest.mark.parametrize("token", [0, 1, 2**64 - 1])
def test_any_64_bit_token_goes(token: int) -> None:
    """The smallest and the largest token are tokens."""
    assert len(child_ids(token, 2)) == 2
    assert len(child_ids(token, 0)) == 0


def test_the_digest_tells_values_and_their_places_apart() -> None:
    """Other values, other marks and another order give another digest; nothing marked gives 0."""
    yes, no = True, False
    digests = [
        digest(u64(1, 2), np.array([yes, yes])),
        digest(u64(2, 1), np.array([yes, yes])),
        digest(u64(1, 2), np.array([yes, no])),
        digest(u64(1, 2), np.array([no, yes])),
        digest(u64(1, 3), np.array([yes, yes])),
        digest(u64(0, 0), np.array([yes, no])),
        digest(u64(0, 0), np.array([no, no])),
    ]
    assert len(set(digests)) == len(digests)
    assert digests[-1] == digest(u64(), np.array([], np.bool_)) == 0


def test_roots_of_a_task_are_dense_and_tell_where_they_belong() -> None:
    """A root is its task and its number, next to the root before it."""
    last = 2**47 - 1
    assert make_root(3, 5) == make_root(3, 4) + 1
    assert (task_of(make_root(3, last)), sequence_of(make_root(3, last))) == (3, last)
    assert make_root(4, 0) == make_root(3, last) + 1
