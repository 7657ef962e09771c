"""Collections as values of declared types: what goes together, and what Arrow would change."""

import collections
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from sparkstorm.packets import columns
from sparkstorm.packets.columns import CoderError, make_column
from sparkstorm.streams import Field, parse_type


class Point(NamedTuple):
    """A struct of another shape than a dict."""

    a: Any
    b: Any


def column(values: list[Any], ddl: str) -> Any:
    """The column for a field ``f``."""
    return make_column(Field("f", parse_type(ddl)), values)


@pytest.mark.parametrize(
    ("ddl", "wrap"),
    [
        ("struct<a: long, b: string>", lambda struct: struct),
        ("array<struct<a: long, b: string>>", lambda struct: [struct]),
        ("map<string, struct<a: long, b: string>>", lambda struct: {"k": struct}),
        ("struct<s: struct<a: long, b: string>>", lambda struct: {"s": struct}),
    ],
)
def test_structs_of_all_shapes_go_together(ddl: str, wrap: Any) -> None:
    """No row fails for its company: Arrow takes dicts, tuples, pairs, but one of them at a time."""
    plain = [wrap({"a": number, "b": "x"}) for number in range(100)]
    plain[2:2] = [wrap(None), wrap(Point(-1, "x")), wrap([("a", -2), ("b", "x")])]
    found = column(plain, ddl).to_list()
    plain[3:5] = [wrap({"a": -1, "b": "x"}), wrap({"a": -2, "b": "x"})]
    assert found == plain


def test_what_does_not_fit_fails_without_those_of_another_shape() -> None:
    """Nor do those of its own shape."""
    values = [{"a": 1, "b": "x"}, Point(2, "x"), {"a": "x"}, Point("x", 1), {"a": 3}]
    with pytest.raises(CoderError, match=r"but got \{'a': 'x'\}") as caught:
        column(values, "struct<a: long, b: string>")
    assert caught.value.rows == [2, 3]


def test_a_tuple_is_read_in_order_also_beside_pairs() -> None:
    """Arrow would read its members as pairs, too, if the first row was made of pairs."""
    values = [[("a", ["q"])], (("a", "x"),)]
    [_, found] = column(values, "struct<a: array<string>>").to_list()
    assert found == {"a": ["a", "x"]}


def test_what_is_too_large_together_is_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows stay, so that what is sent again is less."""
    monkeypatch.setattr(columns, "joined", lambda _: None)
    with pytest.raises(CoderError, match="too large for one array") as caught:
        column([{"a": 1}, {"a": 2}, (3,), (4,), (5,), (6,), {"a": 7}], "struct<a: long>")
    assert caught.value.rows == [0, 1, 2, 5, 6]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("map<string, long>", [None]),
        ("map<string, long>", [("a", 1), None]),
        ("map<string, long>", [(None, 1)]),
        ("map<string, long>", [1]),
        ("map<string, long>", [{"key": "a"}]),
        ("map<string, long>", np.array([None, ("a", 1)], object)),
        ("map<string, map<string, long>>", [(None, None), None]),
        ("map<string, map<string, long>>", {"a": [None]}),
        ("array<map<string, long>>", [{}, [None]]),
        ("struct<a: map<string, long>>", {"a": [None]}),
        ("struct<a: map<string, long>>", ([None],)),
    ],
)
def test_a_map_is_made_of_pairs_only(ddl: str, value: Any) -> None:
    """Arrow takes a list that holds None, and then aborts the process."""
    with pytest.raises(CoderError, match="is declared") as caught:
        column([{}, value] if ddl.startswith("map") else [None, value], ddl)
    assert caught.value.rows == [1]


@pytest.mark.parametrize(
    "value",
    ["word", "", b"bytes", b"", bytearray(b"x"), memoryview(b"x"), np.str_("x")],
    ids=lambda value: f"{type(value).__name__}-{len(value)}",
)
@pytest.mark.parametrize(
    "ddl",
    ["array<string>", "array<long>", "map<string, long>", "struct<a: long>", "array<array<date>>"],
)
def test_text_is_no_collection(ddl: str, value: Any) -> None:
    """Arrow makes a list of its letters or bytes, and nothing of empty text."""
    given = [value] if ddl.startswith("array<array") else value
    with pytest.raises(CoderError, match="is declared") as caught:
        column([None, given], ddl)
    assert caught.value.rows == [1]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("struct<a: timestamp>", (1,)),
        ("struct<a: timestamp>", [("a", 1)]),
        ("struct<a: long, b: long>", Point(1, 2.5)),
        ("struct<a: long, b: long>", [("a", 1), ("b", 2.5)]),
        ("struct<a: long>", [("a", 1), ("b", 2)]),
        ("struct<a: long>", [("a", 1), ("a", 2)]),
        ("array<struct<a: array<string>>>", [("word",)]),
    ],
)
def test_members_are_checked_however_they_are_given(ddl: str, value: Any) -> None:
    """As those of dicts are."""
    with pytest.raises(CoderError, match="is declared") as caught:
        column([None, value], ddl)
    assert caught.value.rows == [1]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("array<string>", collections.UserDict({0: "x"})),
        ("array<long>", collections.UserDict({"a": 1})),
        ("map<string, string>", collections.UserDict({0: ("a", "b")})),
        ("array<long>", itertools.count()),
    ],
    ids=["numbers", "raises", "map", "endless"],
)
def test_odd_collections_do_not_fit(ddl: str, value: Any) -> None:
    """What has other keys for Arrow, raises anything, or has no end."""
    with pytest.raises(CoderError, match="is declared") as caught:
        column([None, value], ddl)
    assert caught.value.rows == [1]
