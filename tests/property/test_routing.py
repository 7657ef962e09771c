"""Groupings: which tasks get a tuple. Each a pure function of what was emitted."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from sparkstorm.errors import InternalError
from sparkstorm.packets.columns import CoderError, make_column
from sparkstorm.planning.plan import Route
from sparkstorm.streams import Field, Stream
from sparkstorm.tasks.routing import Copies, Emissions, choose_tasks, tasks_of_one
from sparkstorm.topology.grouping import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    FieldsGrouping,
    Global,
    Grouping,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
)

FIRST = 5
"""The subscriber's lowest task."""

tasks = st.integers(1, 7).map(lambda count: range(FIRST, FIRST + count))
keys = st.lists(st.sampled_from(["a", "b", "c", "d", None, 1, 2.5]), max_size=40)


def emissions(values: Sequence[Any], turn: int = 0, **more: Any) -> Emissions:
    """Tuples with a key and, beside it, their own number."""
    columns = {
        "key": make_column(Field("key"), list(values)),
        "number": make_column(Field("number"), list(range(len(values)))),
    }
    return Emissions(
        columns=columns, count=len(values), turn=turn, local=more.pop("local", {}), **more
    )


def route(grouping: Grouping, tasks: range, given: Emissions) -> list[tuple[int, int]]:
    """The copies as (task, row), after checking their order and :meth:`Copies.by_task`."""
    copies = choose_tasks(Route(target="bolt", tasks=tasks, grouping=grouping), given)
    pairs = list(zip(copies.tasks.tolist(), copies.rows.tolist(), strict=True))
    assert pairs == sorted(pairs), "sorted by task, then by tuple"
    assert_by_task(copies)
    assert {task for task, _ in pairs} <= set(tasks)
    return pairs


def assert_by_task(copies: Copies) -> None:
    """The runs cover all copies, one for each task."""
    runs = copies.by_task()
    assert [row for _, start, stop in runs for row in range(start, stop)] == list(
        range(len(copies.tasks))
    )
    assert [task for task, _, _ in runs] == sorted(set(copies.tasks.tolist()))
    for task, start, stop in runs:
        assert set(copies.tasks[start:stop].tolist()) == {task}


def task_by_row(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The one task of each tuple."""
    assert len({row for _, row in pairs}) == len(pairs)
    return {row: task for task, row in pairs}


@given(tasks=tasks, count=st.integers(0, 50), turn=st.integers(0, 1000))
@pytest.mark.parametrize("grouping", [Shuffle(), NoneGrouping(), LocalOrShuffle()])
def test_shuffle_gives_equal_shares(
    grouping: Grouping, tasks: range, count: int, turn: int
) -> None:
    """Each tuple to one task, and no task gets two more than another."""
    pairs = route(grouping, tasks, emissions(["x"] * count, turn))
    assert sorted(task_by_row(pairs)) == list(range(count))
    shares = Counter(task for task, _ in pairs)
    assert max(shares[task] for task in tasks) - min(shares[task] for task in tasks) <= 1


@given(tasks=tasks, turn=st.integers(0, 1000))
def test_small_batches_are_spread_by_their_turn(tasks: range, turn: int) -> None:
    """One tuple a batch goes to another task each time."""
    seen = {route(Shuffle(), tasks, emissions(["x"], turn + t))[0][0] for t in range(len(tasks))}
    assert seen == set(tasks)


@given(tasks=tasks, values=keys, cut=st.integers(0, 40))
def test_equal_keys_go_to_one_task(tasks: range, values: list[Any], cut: int) -> None:
    """Whatever else is emitted with them, in whichever batch."""
    whole = task_by_row(route(FieldsGrouping(("key",)), tasks, emissions(values)))
    by_key = {values[row]: task for row, task in whole.items()}
    assert len(whole) == len(values)
    assert all(by_key[values[row]] == task for row, task in whole.items())
    part = task_by_row(route(FieldsGrouping(("key",)), tasks, emissions(values[cut:], turn=9)))
    assert part == {row: by_key[key] for row, key in enumerate(values[cut:])}


@given(tasks=tasks, values=keys)
def test_several_fields_are_one_key(tasks: range, values: list[Any]) -> None:
    """All of them count; the tuple's number makes every key another one."""
    both = task_by_row(route(FieldsGrouping(("key", "number")), tasks, emissions(values)))
    assert sorted(both) == list(range(len(values)))
    same = task_by_row(route(FieldsGrouping(("key", "key")), tasks, emissions(values)))
    assert all(same[a] == same[b] for a in same for b in same if values[a] == values[b])


def test_keys_are_spread_over_the_tasks() -> None:
    """A thousand keys on seven tasks: none gets more than twice its share."""
    pairs = route(FieldsGrouping(("key",)), range(1, 8), emissions([str(n) for n in range(1000)]))
    shares = Counter(task for task, _ in pairs)
    assert len(shares) == 7
    assert max(shares.values()) < 2 * 1000 / 7


@given(tasks=tasks, values=keys)
def test_a_partial_key_has_two_tasks(tasks: range, values: list[Any]) -> None:
    """Two different ones, the same in every batch, between which its tuples are balanced."""
    assume(len(tasks) > 1)
    grouping = PartialKey(("key",))
    chosen = task_by_row(route(grouping, tasks, emissions(values * 4)))
    for key in set(map(str, values)):
        rows = [row for row in chosen if str(values[row % len(values)]) == key]
        alone = task_by_row(route(grouping, tasks, emissions([key_of(values, key)] * 10)))
        assert len(set(alone.values())) == 2
        assert {chosen[row] for row in rows} <= set(alone.values())
        assert sorted(Counter(alone.values()).values()) == [5, 5]


def key_of(values: list[Any], text: str) -> Any:
    """The value with this text."""
    return next(value for value in values if str(value) == text)


def test_a_partial_key_balances_a_skewed_load() -> None:
    """Half of all tuples have one key, and still both tasks get the same."""
    values = [key for n in range(500) for key in ("hot", str(n))]
    shares = Counter(t for t, _ in route(PartialKey(("key",)), range(1, 3), emissions(values)))
    assert max(shares.values()) - min(shares.values()) <= 1


@given(values=keys)
def test_a_partial_key_of_one_task_goes_there(values: list[Any]) -> None:
    """There is no second one to choose."""
    pairs = route(PartialKey(("key",)), range(3, 4), emissions(values))
    assert pairs == [(3, row) for row in range(len(values))]


@given(tasks=tasks, count=st.integers(0, 20))
def test_all_gives_each_task_a_copy(tasks: range, count: int) -> None:
    """One, of each tuple."""
    pairs = route(All(), tasks, emissions(["x"] * count))
    assert pairs == [(task, row) for task in tasks for row in range(count)]


@given(tasks=tasks, count=st.integers(0, 20), turn=st.integers(0, 9))
def test_global_gives_everything_to_the_lowest_task(tasks: range, count: int, turn: int) -> None:
    """Always the same one."""
    pairs = route(Global(), tasks, emissions(["x"] * count, turn))
    assert pairs == [(FIRST, row) for row in range(count)]


@given(tasks=tasks, count=st.integers(0, 30), turn=st.integers(0, 99), data=st.data())
def test_local_tasks_are_preferred(
    tasks: range, count: int, turn: int, data: st.DataObject
) -> None:
    """If there are any in the partition, only these get something, in equal shares."""
    local = data.draw(st.lists(st.sampled_from(tasks), unique=True, min_size=1))
    given = emissions(["x"] * count, turn, local={"bolt": local, "other": [99]})
    shares = Counter(task for task, _ in route(LocalOrShuffle(), tasks, given))
    assume(len(tasks) > 1)
    assert set(shares) <= set(local)
    assert sum(shares.values()) == count
    assert max(shares[task] for task in local) - min(shares[task] for task in local) <= 1


@given(tasks=tasks, picks=st.lists(st.integers(1, 15), max_size=30))
def test_direct_obeys_the_emitter(tasks: range, picks: list[int]) -> None:
    """Tuples that were meant for another subscriber's tasks are not this one's."""
    given = emissions(["x"] * len(picks), direct=np.array(picks, np.int32))
    pairs = route(Direct(), tasks, given)
    assert pairs == sorted((task, row) for row, task in enumerate(picks) if task in tasks)


def test_what_was_not_emitted_directly_goes_nowhere() -> None:
    """No task was picked."""
    assert route(Direct(), range(1, 3), emissions(["x"])) == []


class ByLength(CustomGrouping):
    """As many copies as the key is long, going round in turn; what they were asked is kept."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        self.asked.append((tuple(values), tuple(tasks), sequence))
        return [tasks[(sequence + n) % len(tasks)] for n in range(min(len(values[0]), len(tasks)))]


@given(tasks=tasks, values=st.lists(st.text(max_size=4), max_size=10), turn=st.integers(0, 9))
def test_a_custom_grouping_is_asked_for_each_tuple(
    tasks: range, values: list[str], turn: int
) -> None:
    """With its values, the tasks and a number that goes on; it may choose several or none."""
    grouping = ByLength()
    pairs = route(Custom(grouping), tasks, emissions(values, turn))
    assert grouping.asked == [
        ((value, row), tuple(tasks), turn + row) for row, value in enumerate(values)
    ]
    copies = Counter(row for _, row in pairs)
    assert all(copies[row] == min(len(value), len(tasks)) for row, value in enumerate(values))


class Answer(CustomGrouping):
    """Gives as an answer what the tuple's key is, or raises it."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        answer: Any = values[0] if values else [tasks[0]]
        if isinstance(answer, Exception):
            raise answer
        return cast("Sequence[int]", answer)


def test_a_custom_grouping_may_answer_with_anything_iterable() -> None:
    """A generator, a set, an array: not one tuple gets lost over it."""
    values = [(5, 6), {6}, np.array([5]), [], range(5, 7), "".join(())]
    given = Emissions(
        columns={"key": make_column(Field("key"), [*values])}, count=6, turn=0, local={}
    )
    pairs = route(Custom(Answer()), range(5, 7), given)
    assert pairs == [(5, 0), (5, 2), (5, 4), (6, 0), (6, 1), (6, 4)]


def test_a_generator_is_an_answer() -> None:
    """It can be gone through once only."""

    class Generate(CustomGrouping):
        def choose_tasks(
            self, values: Sequence[Any], tasks: Sequence[int], sequence: int
        ) -> Sequence[int]:
            return (task for task in tasks)  # type: ignore[return-value]

    assert len(route(Custom(Generate()), range(5, 7), emissions(["x", "y"]))) == 4


def test_a_custom_grouping_works_on_a_stream_without_fields() -> None:
    """There are tuples, though they have no values."""
    given = Emissions(columns={}, count=3, turn=0, local={})
    assert route(Custom(Answer()), range(5, 7), given) == [(5, 0), (5, 1), (5, 2)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([4], r"Answer chose task 4, but 'bolt' has the tasks 5 to 6"),
        ([5, 7], r"Answer chose task 7, but"),
        (["5"], r"Answer chose task 5, but"),
        (None, r"Answer raised TypeError: 'NoneType' object is not iterable"),
        (5, r"Answer raised TypeError"),
        (ValueError("no idea"), r"Answer raised ValueError: no idea"),
    ],
)
def test_a_bad_answer_is_named_with_all_its_rows(answer: Any, message: str) -> None:
    """So that they can be dropped at once, and the other tuples go on."""
    values = [[5], answer, [6], answer]
    with pytest.raises(CoderError, match=message) as caught:
        route(Custom(Answer()), range(5, 7), emissions(values))
    assert caught.value.rows == [1, 3]


@pytest.mark.parametrize("grouping", [FieldsGrouping(("number", "key")), PartialKey(("key",))])
def test_keys_without_a_hash_are_named(grouping: Grouping) -> None:
    """With the field, the value and all rows."""
    with pytest.raises(CoderError, match=r"field 'key': cannot group by \['b'\]") as caught:
        route(grouping, range(5, 7), emissions(["a", ["b"], {}, "a"]))
    assert caught.value.rows == [1, 2]


@pytest.mark.parametrize(
    "grouping", [Shuffle(), FieldsGrouping(("key",)), PartialKey(("key",)), All(), Global()]
)
def test_the_same_emits_go_the_same_way(grouping: Grouping) -> None:
    """Spark may run the task again."""
    values = [str(n % 13) for n in range(100)]
    runs = [route(grouping, range(1, 6), emissions(values, turn=4)) for _ in range(2)]
    assert runs[0] == runs[1]


@given(
    row=st.tuples(*[st.text() | st.binary() | st.integers() | st.floats() | st.booleans()] * 2),
    types=st.sampled_from(["a, b", "a string, b long", "a long, b double", "a binary, b float"]),
    tasks=tasks,
    turn=st.integers(0, 1000),
)
@pytest.mark.parametrize(
    "grouping", [Shuffle(), FieldsGrouping(("a",)), FieldsGrouping(("b", "a")), All(), Global()]
)
def test_one_tuple_goes_where_it_goes_among_others(
    grouping: Grouping, row: tuple[Any, ...], types: str, tasks: range, turn: int
) -> None:
    """Whoever asks for the tasks of one tuple is told the truth."""
    stream, way = Stream(types), Route(target="bolt", tasks=tasks, grouping=grouping)
    found = tasks_of_one(way, stream, row, turn)
    try:
        columns = {
            field.name: make_column(field, [value])
            for field, value in zip(stream.fields, row, strict=True)
        }
    except CoderError:  # the tuple fails when it is sent
        assume(False)
    given = Emissions(columns=columns, count=1, turn=turn, local={})
    assert found is None or found == choose_tasks(way, given).tasks.tolist()
    event("quick" if found else "slow")


def test_many_tasks_are_sorted_right() -> None:
    """As many as there may be."""
    tasks = range(1, 30_001)
    copies = choose_tasks(
        Route(target="bolt", tasks=tasks, grouping=Shuffle()), emissions(["x"] * 60_000, turn=17)
    )
    assert (np.diff(copies.tasks) >= 0).all()
    assert Counter(copies.tasks.tolist()) == Counter(dict.fromkeys(tasks, 2))


def test_an_unknown_grouping_is_a_fault_of_ours() -> None:
    """Not one that sends tuples nowhere."""
    with pytest.raises(InternalError, match="no rule for the grouping 'nearest'"):
        route("nearest", range(1, 3), emissions(["x"]))  # type: ignore[arg-type]
