"""Columns: how values are kept, and what is said of those that do not fit."""

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from sparkstorm.packets.columns import (
    ArrowColumn,
    CoderError,
    DictColumn,
    ObjectColumn,
    make_column,
    pickled,
)
from sparkstorm.streams import Field, parse_type


class Unpicklable:
    """A value that cannot travel."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("tied to this process")


class OnlyPicklable(Exception):
    """A value that cannot be read again if it is made of one word."""

    def __init__(self, *words: str) -> None:
        super().__init__(" ".join(words))
        if len(words) == 1:
            raise ValueError(f"only {words[0]}")


class Silent:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def column(values: list[Any], ddl: str | None = None, *, repeats: bool = False) -> Any:
    """The column for a field ``f``."""
    kind = None if ddl is None else parse_type(ddl)
    return make_column(Field("f", kind), values, repeats=repeats)


@pytest.mark.parametrize(
    "values", [["a"], [1, None], [1.5], [True], [b"x"]], ids=lambda v: type(v[0]).__name__
)
def test_values_of_one_plain_type_travel_as_arrow(values: list[Any]) -> None:
    """Also on an untyped stream: it is the faster way."""
    assert isinstance(column(values), ArrowColumn)


@pytest.mark.parametrize(
    "values",
    [[], [None], [1, True], [1, 1.0], ["a", 1], [2**63], [[1]], [np.int64(1)], ["\ud800"]],
    ids=repr,
)
def test_other_values_travel_pickled(values: list[Any]) -> None:
    """Arrow would change their type, or cannot hold them."""
    assert isinstance(column(values), ObjectColumn)


def test_an_int_is_not_a_bool() -> None:
    """Nor the other way round, though they are equal."""
    assert [type(value) for value in column([1, True, 0, False]).to_list()] == [int, bool] * 2


def test_keys_that_repeat_are_kept_once() -> None:
    """From 64 rows on, if at most half of the values are distinct, and none is missing."""
    assert isinstance(column(["a", "b"] * 32, repeats=True), DictColumn)
    assert isinstance(column(["a", "b"] * 32, "string", repeats=True), DictColumn)
    assert isinstance(column(["a", "b"] * 32), ArrowColumn)
    assert isinstance(column(["a", "b"] * 31, repeats=True), ArrowColumn)
    assert isinstance(column([str(n) for n in range(64)], repeats=True), ArrowColumn)
    assert isinstance(column(["a", None] * 32, repeats=True), ArrowColumn)
    assert isinstance(column([1, 2] * 32, repeats=True), ArrowColumn)


def test_a_compact_dictionary_has_what_is_used() -> None:
    """What is compact already stays as it is."""
    whole = column(["a", "b", "c", "c"] * 16, repeats=True)
    assert whole.compact() is whole
    part = whole.take(np.array([2, 0, 3]))
    assert part.compact().dictionary.to_pylist() == ["a", "c"]
    assert part.compact().to_list() == part.to_list() == ["c", "a", "c"]
    assert part.slice(1, 1).compact().to_list() == []


def test_columns_know_about_how_large_they_are() -> None:
    """Enough to cut packets by it."""
    numbers = column([1] * 100)
    assert numbers.nbytes >= 800
    assert numbers.slice(0, 10).nbytes < numbers.nbytes
    assert column(["a"] * 100, repeats=True).nbytes == 400
    assert column([[1]] * 100).nbytes > 0


def test_a_map_comes_back_as_a_dict() -> None:
    """Not as the pairs that Arrow makes of it; given as pairs, too."""
    found = column([{"a": 1}, [("b", 2)], {}, None], "map<string, long>")
    assert found.to_list() == [{"a": 1}, {"b": 2}, {}, None]


@pytest.mark.parametrize(
    ("ddl", "value", "message"),
    [
        ("long", "1", "field 'f' is declared int64, but got '1' (str)"),
        ("long", 1.5, "field 'f' is declared int64, but got 1.5 (float)"),
        ("long", True, "field 'f' is declared int64, but got True (bool)"),
        ("long", 2**63, "field 'f' is declared int64, but got 9223372036854775808 (int)"),
        ("tinyint", 128, "field 'f' is declared int8, but got 128 (int)"),
        ("boolean", 1, "field 'f' is declared bool, but got 1 (int)"),
        ("string", 1, "field 'f' is declared string, but got 1 (int)"),
        ("string", b"\xff", r"field 'f' is declared string, but got b'\xff' (bytes)"),
        ("string", "\ud800", r"field 'f' is declared string, but got '\ud800' (str)"),
        ("string", float("nan"), "field 'f' is declared string, but got nan (float)"),
        ("long", Decimal("NaN"), "field 'f' is declared int64, but got Decimal('NaN') (Decimal)"),
        (
            "decimal(4,2)",
            Decimal("1.234"),
            "field 'f' is declared decimal128(4, 2), but got Decimal('1.234') (Decimal)",
        ),
        ("date", "2024-01-01", "field 'f' is declared date32[day], but got '2024-01-01' (str)"),
        ("array<int>", [1, "x"], "is declared list<element: int32>, but got [1, 'x'] (list)"),
        ("struct<a: int>", {"a": "x"}, "is declared struct<a: int32>, but got {'a': 'x'} (dict)"),
    ],
)
def test_a_misfit_is_named(ddl: str, value: Any, message: str) -> None:
    """With its field, the type, the value, and all rows where such values stand."""
    fitting = column([None, None], ddl).to_list()
    with pytest.raises(CoderError) as caught:
        column([*fitting, value, None, value], ddl)
    assert message in str(caught.value)
    assert caught.value.rows == [2, 4]


def test_each_misfit_is_told_of_its_own_value() -> None:
    """Also of keys without a hash."""
    with pytest.raises(CoderError) as caught:
        column([1, 2**40, 2, True], "int")
    where = "field 'f' is declared int32, but got "
    assert caught.value.faults == {1: f"{where}{2**40} (int)", 3: f"{where}True (bool)"}
    assert str(caught.value) == caught.value.faults[1]
    with pytest.raises(CoderError) as caught:
        column([1, [2], {}]).hashes()
    assert "[2]" in caught.value.faults[1]
    assert "{}" in caught.value.faults[2]


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, [["x" * 1000] * 10] * 1000, 10**5000, Silent()],
    ids=["text", "lists", "digits", "silent"],
)
def test_a_misfit_is_not_shown_in_full(value: Any) -> None:
    """Python raises for a number of so many digits, and a class may, too."""
    with pytest.raises(CoderError, match="field 'f' is declared int64, but got ") as caught:
        column([1, value], "long")
    assert caught.value.rows == [1]
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("date", 5),
        ("date", datetime.datetime(2024, 1, 1, 5)),  # noqa: DTZ001 - for naive values
        ("timestamp", 5),
        ("timestamp_ntz", 1.5),
        ("int", Decimal("1.5")),
        ("int", np.float64(1.5)),
        ("float", 1e300),
        ("array<int>", [1, 1.5]),
        ("array<array<date>>", [[], [5]]),
        ("map<string, int>", {"a": 1.5}),
        ("map<int, string>", [(1.5, "a")]),
        ("struct<a: int>", {"a": 1.5}),
        ("struct<a: int>", {"a": 1, "b": 2}),
        ("array<struct<a: map<string, int>>>", [{"a": {}}, {"a": {"x": -0.5}}]),
    ],
)
def test_nothing_is_cut_off_without_a_word(ddl: str, value: Any) -> None:
    """Arrow would: it makes 1 of 1.5, a day of a moment or a number, infinity of 1e300."""
    with pytest.raises(CoderError, match="is declared") as caught:
        column([None, value, None], ddl)
    assert caught.value.rows == [1]


@pytest.mark.parametrize(
    ("ddl", "value", "found"),
    [
        ("float", float("-inf"), float("-inf")),
        ("int", np.int16(7), 7),
        ("timestamp_ntz", np.datetime64("2024-01-01", "us"), datetime.datetime(2024, 1, 1)),  # noqa: DTZ001
        ("array<int>", (1, np.int64(2), None), [1, 2, None]),
        ("array<string>", {"a"}, ["a"]),
        ("struct<a: int, b: int>", {"b": 2}, {"a": None, "b": 2}),
        ("struct<a: int>", (1,), {"a": 1}),
        ("map<string, float>", {"a": None}, {"a": None}),
    ],
)
def test_values_that_lose_nothing_are_taken(ddl: str, value: Any, found: Any) -> None:
    """They come back as their field's type has it."""
    assert column([None, value], ddl).to_list() == [None, found]


def test_numbers_that_fit_exactly_are_taken() -> None:
    """A whole float in an integer field, an integer in a float or decimal field."""
    assert column([1.0], "long").to_list() == [1]
    assert column([1], "double").to_list() == [1.0]
    assert column([12], "decimal(4,2)").to_list() == [Decimal("12.00")]


def test_a_missing_value_is_not_nan() -> None:
    """Both come back as they went."""
    first, second = column([float("nan"), None], "double").to_list()
    assert math.isnan(first)
    assert second is None


def test_a_time_of_any_zone_comes_back_as_the_same_moment() -> None:
    """In UTC."""
    east = datetime.timezone(datetime.timedelta(hours=9))
    moment = datetime.datetime(2024, 1, 1, 5, tzinfo=east)
    [found] = column([moment], "timestamp").to_list()
    assert found == moment
    assert found.utcoffset() == datetime.timedelta(0)


def test_values_that_cannot_be_pickled_are_named() -> None:
    """With the reason, and the rows."""
    with pytest.raises(CoderError, match="cannot be pickled: tied to this process") as caught:
        pickled([1, Unpicklable(), "x", [Unpicklable()]])
    assert caught.value.rows == [1, 3]


def test_values_that_cannot_be_read_again_are_named() -> None:
    """Before they are sent: the reader could only fail all that travels with them."""
    bad = OnlyPicklable("two", "words")
    ring: list[Any] = []
    ring.append(ring)
    for others in ([1, None], [ring, None]):
        with pytest.raises(CoderError, match="not be read again: ValueError: only two") as caught:
            pickled([bad, *others, {"in": [bad]}])
        assert caught.value.rows == [0, 3]


def test_a_value_that_contains_itself_travels() -> None:
    """It is pickled with references, as such values must be."""
    ring: list[Any] = [1]
    ring.append(ring)
    [found, other] = pickle.loads(pickled([ring, "x"]))
    assert found[1] is found
    assert other == "x"


def test_tuples_do_not_share_an_object_after_the_way() -> None:
    """One bolt's change to its value is not seen by another."""
    shared = {"n": 1}
    one, other = pickle.loads(pickled([shared, shared]))
    assert one == other
    assert one is not other


@pytest.mark.parametrize("values", [["a", [1], {}, None], [[1], [2]]], ids=["mixed", "lists"])
def test_values_without_a_hash_are_named(values: list[Any]) -> None:
    """All the rows at fault at once."""
    with pytest.raises(CoderError, match=r"cannot group by \[1\]") as caught:
        column(values).hashes()
    assert caught.value.rows == [i for i, v in enumerate(values) if isinstance(v, list | dict)]


def test_an_array_without_a_hash_is_named() -> None:
    """A partitioned spout may read lists into an untyped field."""
    with pytest.raises(CoderError, match="cannot group by") as caught:
        ArrowColumn(pa.array([[1], None, [2]])).hashes()
    assert caught.value.rows == [0, 2]
