"""Failed roots in arrays do as a dictionary of failures does."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.packets.failures import pack_failed, unpack_failed
from sparkstorm.verdicts import Failure, Reason

failures = st.builds(
    Failure,
    reason=st.sampled_from(Reason),
    component=st.sampled_from(["", "bolt"]),
    task=st.integers(0, 3),
    message=st.sampled_from(["", "a", "b\n", "\ud800"]),
    traceback=st.sampled_from(["", "x\ny\n", "x\nz", "\x85\r\n"]),
    attempt=st.integers(1, 2),
    final=st.booleans(),
    counted=st.booleans(),
)
numbers = st.integers(0, 40) | st.integers(0, 2**62)
tables = st.dictionaries(numbers, failures, max_size=12)


def u64(values: list[int]) -> np.ndarray:
    """Values as roots."""
    return np.array(values, np.uint64)


@given(table=tables)
def test_it_is_the_mapping_that_it_was_made_of(table: dict[int, Failure]) -> None:
    """Also after it has travelled."""
    failed = FailedRoots.of(table)
    assert failed == table
    assert list(failed) == sorted(table)
    assert list(failed.items()) == sorted(table.items())
    assert unpack_failed(pack_failed(failed)) == table
    assert (5 in failed, failed.get(7)) == (5 in table, table.get(7))


@given(parts=st.lists(tables, max_size=4))
def test_the_first_part_tells_the_failure(parts: list[dict[int, Failure]]) -> None:
    """Of several that have a root."""
    merged: dict[int, Failure] = {}
    for part in parts:
        merged = {**part, **merged}
    assert FailedRoots.merge([FailedRoots.of(part) for part in parts]) == merged


@given(table=tables, first=numbers, count=st.integers(0, 30), others=st.lists(numbers))
def test_a_part_is_that_of_the_mapping(
    table: dict[int, Failure], first: int, count: int, others: list[int]
) -> None:
    """By bounds, by roots, and packed without the causes of the rest."""
    failed = FailedRoots.of(table)
    inside = {root: why for root, why in table.items() if first <= root < first + count}
    part = failed.between(first, first + count)
    assert part == inside
    assert unpack_failed(pack_failed(part)) == inside
    assert set(part.compact().causes) == set(inside.values())
    rest = failed.without(u64(others))
    assert rest == {root: why for root, why in table.items() if root not in others}
    again = rest.changed(lambda why: replace(why, attempt=9))
    assert again == {root: replace(why, attempt=9) for root, why in rest.items()}


@given(table=tables)
def test_groups_hold_each_root_once(table: dict[int, Failure]) -> None:
    """By what decides on the next try, by text within that, and by cause."""
    failed = FailedRoots.of(table)
    assert dict(failed.counts()) == {
        why: list(table.values()).count(why) for why in set(table.values())
    }
    assert [why for why, _ in failed.counts()] == list(dict.fromkeys(failed.values()))
    found: dict[int, Failure] = {}
    for way in failed.by_way():
        texts = way.by_text(0)
        assert [places[0] for _, places in texts] == sorted(places[0] for _, places in texts)
        assert len({why.message for why, _ in texts}) == len(texts)
        found |= {r: why for why, places in texts for low, end in places for r in range(low, end)}
        assert len({_alike(way[root]) for root in way}) == 1
    assert {root: (_alike(why), why.message) for root, why in found.items()} == {
        root: (_alike(why), why.message) for root, why in table.items()
    }


def _alike(why: Failure) -> Failure:
    return replace(why, task=0, message="", traceback="")


@given(given_failures=st.lists(failures, max_size=30), texts=st.integers(0, 5))
def test_what_finds_no_room_shares_one_failure_of_its_kind(
    given_failures: list[Failure], texts: int
) -> None:
    """Nothing but the text is lost, and no more texts are kept than there is room for."""
    causes = Causes(texts=texts)
    shared = [causes.share(why) for why in given_failures]
    for why, told in zip(given_failures, shared, strict=True):
        assert told == why or _alike(told) == _alike(why)
        assert told.task == why.task
        assert told != why or causes.share(why) is told
    kept = {told.message for told in shared if told in given_failures}
    assert len(kept) <= texts
    assert len({told for told in shared if told not in given_failures}) <= 2 * 4 * 5 * 2 * 2 * 2


def test_a_text_of_a_million_characters_keeps_its_beginning() -> None:
    """And all of them together have a bound."""
    causes = Causes()
    long = Failure(reason=Reason.FAILED, message="x" * 1_000_000)
    told = causes.share(long)
    assert told.message.startswith("xxx")
    assert told.message.endswith("… (1,000,000 characters)")
    assert len(told.message) == 2100
    many = {causes.share(replace(long, message=f"{n} {'x' * 5000}")) for n in range(1000)}
    assert sum(len(why.message) for why in many) < 510_000
    assert any("stands for all the others" in why.message for why in many)
