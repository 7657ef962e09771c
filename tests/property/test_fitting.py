"""Values of declared types: each fits or not by itself, whatever stands beside it."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.packets.columns import CoderError, make_column
from sparkstorm.streams import Field, parse_type

FIELDS = [
    Field("f", parse_type(ddl))
    for ddl in (
        "struct<a: long, b: string>",
        "struct<a: array<string>, b: struct<a: long, b: date>>",
        "array<struct<a: long, b: map<string, long>>>",
        "map<string, struct<a: long, b: array<string>>>",
        "map<string, map<string, array<long>>>",
        "array<array<string>>",
    )
]

odd_values: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, 1.5, "a", "", b"a", True, [], [None], (), (1, "a"), [("a", 1)], (("a", "b"),), {}]
)
names = st.sampled_from(["a", "b"])


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values in every shape that Arrow takes for a type, and here and there a wrong one."""
    return st.one_of(_fitting(kind), _fitting(kind), _fitting(kind), odd_values)


def _fitting(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_map(kind):
        entries = st.lists(st.tuples(names, values_of(kind.item_type)), max_size=2)
        return st.one_of(entries, entries.map(dict), entries.map(tuple))
    if pa.types.is_struct(kind):
        members = st.tuples(*(values_of(field.type) for field in kind))
        named = members.map(lambda values: list(zip("ab", values, strict=True)))
        return st.one_of(members, named, named.map(dict))
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=2)
    return st.just("x") if pa.types.is_string(kind) else st.integers(0, 9)


fields_and_values = st.sampled_from(FIELDS).flatmap(
    lambda field: st.tuples(st.just(field), st.lists(values_of(field.type), max_size=4))
)


def outcome(field: Field, values: list[Any]) -> list[Any] | CoderError:
    """What arrives, or why not."""
    try:
        return make_column(field, values).to_list()
    except CoderError as error:
        return error


@given(fields_and_values)
def test_a_value_fits_or_not_whatever_stands_beside_it(drawn: tuple[Field, list[Any]]) -> None:
    """And it arrives as the same; nothing aborts the process."""
    field, values = drawn
    alone = [outcome(field, [value]) for value in values]
    misfits = [row for row, one in enumerate(alone) if isinstance(one, CoderError)]
    found = outcome(field, values)
    if isinstance(found, CoderError):
        assert found.rows == misfits
    else:
        assert [[value] for value in found] == alone
