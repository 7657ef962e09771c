"""Columns and packets: every value comes back as just what it was."""

import datetime
import math
import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.columns import Column, DictColumn, make_column
from sparkstorm.packets.hashing import hash_value
from sparkstorm.packets.packet import Body, Packet, PacketWriter
from sparkstorm.streams import Field, parse_type

UTC = datetime.UTC


@dataclass(frozen=True)
class Point:
    """A value of a user's own type."""

    x: int
    name: str


class Text(str):
    """A kind of text that must not come back as plain text."""

    __slots__ = ()


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**63) - 1, 2**64)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([Decimal("1.50"), datetime.date(2024, 2, 29), Text("t"), "\ud800", 1j])
)
anything = st.recursive(
    atoms | st.builds(Point, st.integers(), st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
columns_of_one_kind = st.one_of(
    *(
        st.lists(kind | st.none(), max_size=10)
        for kind in (st.booleans(), st.integers(), st.floats(), st.text(), st.binary())
    )
)

DDL: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=10),
    "binary": st.binary(max_size=10),
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "byte": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "short": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "real": st.floats(width=32),
    "double": st.floats(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(9,4)": st.decimals(-99999, 99999, places=4),
    "numeric": st.integers(0, 10**10 - 1).map(Decimal),
    "array<int>": st.lists(st.integers(0, 9) | st.none(), max_size=3),
    "map<string, double>": st.dictionaries(st.text(max_size=3), st.floats(), max_size=3),
    "struct<a: int, b: string>": st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.text()}),
    "array<struct<m: map<int, array<date>>, n int>>": st.lists(
        st.fixed_dictionaries(
            {
                "m": st.none()
                | st.dictionaries(st.integers(0, 9), st.lists(st.dates(), max_size=2), max_size=2),
                "n": st.none() | st.integers(0, 9),
            }
        ),
        max_size=2,
    ),
    "map<string, map<string, long>>": st.dictionaries(
        st.text(max_size=2),
        st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=2),
        max_size=2,
    ),
}


def assert_same(found: Any, given: Any) -> None:
    """Equal and of the same type, to the depth; NaN is as NaN."""
    assert type(found) is type(given)
    if isinstance(given, float):
        assert found == given or (math.isnan(found) and math.isnan(given))
        assert math.copysign(1, found) == math.copysign(1, given) or math.isnan(given)
    elif isinstance(given, dict):
        assert set(found) == set(given)
        for key, value in given.items():
            assert_same(found[key], value)
    elif isinstance(given, list | tuple):
        assert len(found) == len(given)
        for one, other in zip(found, given, strict=True):
            assert_same(one, other)
    else:
        assert found == given


def sent(column: Column) -> Column:
    """The column after it went through a packet."""
    body = Body.encode([column], len(column))
    lineage = Lineage.untracked(len(column))
    data = PacketWriter(1).data(stream=0, target=1, body=body, lineage=lineage)
    [found] = Packet.decode(data).columns()
    return found


@given(st.lists(anything, max_size=10) | columns_of_one_kind)
def test_an_untyped_stream_carries_anything(values: list[Any]) -> None:
    """Of mixed types, nested, huge, without a value: type and all."""
    column = make_column(Field("f"), list(values))
    assert_same(column.to_list(), values)
    assert_same(sent(column).to_list(), values)


@pytest.mark.parametrize("ddl", DDL)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_a_typed_stream_carries_values_of_its_type(ddl: str, data: st.DataObject) -> None:
    """Each type of Spark's DDL, with None where there is no value."""
    values = data.draw(st.lists(DDL[ddl] | st.none(), max_size=8))
    column = make_column(Field("f", parse_type(ddl)), list(values))
    if ddl == "timestamp":
        assert [value.tzinfo is None for value in column.to_list() if value] == [
            False for value in values if value
        ]
        assert column.to_list() == sent(column).to_list() == values
    else:
        assert_same(column.to_list(), values)
        assert_same(sent(column).to_list(), values)


@given(
    words=st.lists(st.text(max_size=3), min_size=1, max_size=20),
    picks=st.lists(st.integers(0, 19), min_size=64, max_size=200),
    data=st.data(),
)
def test_repeated_text_is_kept_once(
    words: list[str], picks: list[int], data: st.DataObject
) -> None:
    """A column of keys with many repeats: picked, cut and sent, it is as its list is."""
    values = [words[pick % len(words)] for pick in picks]
    column = make_column(Field("f"), list(values), repeats=True)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=10))
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    assert isinstance(column, DictColumn)
    taken, cut = column.take(np.array(rows, np.int64)), column.slice(start, stop)
    assert taken.to_list() == [values[row] for row in rows]
    assert cut.to_list() == values[start:stop]
    for part, expected in ((taken, [values[row] for row in rows]), (cut, values[start:stop])):
        assert part.hashes().tolist() == [hash_value(value) for value in expected]
        small = part.compact()
        assert small.to_list() == sent(part).to_list() == expected
        assert sorted(small.dictionary.to_pylist()) == sorted(set(expected))


@given(values=st.lists(anything, max_size=10) | columns_of_one_kind, data=st.data())
def test_any_column_can_be_picked_from_and_cut(values: list[Any], data: st.DataObject) -> None:
    """Rows may be picked in any order, also twice."""
    column = make_column(Field("f"), list(values))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=10)) if values else []
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    taken, cut = column.take(np.array(rows, np.int64)), column.slice(start, stop)
    assert (len(column), len(taken), len(cut)) == (len(values), len(rows), stop - start)
    assert_same(taken.to_list(), [values[row] for row in rows])
    assert_same(sent(cut).to_list(), values[start:stop])


@given(st.lists(anything, max_size=8))
def test_equal_values_make_equal_bytes(values: list[Any]) -> None:
    """Also if they are other objects: one run has some text twice, another two equal ones."""
    again = [pickle.loads(pickle.dumps(value)) for value in values]
    one, other = (make_column(Field("f"), list(v)) for v in (values, again))
    assert Body.encode([one], len(values)) == Body.encode([other], len(values))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.bool_(), pa.float64()])
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_arrow_columns_hash_as_their_values(kind: pa.DataType, data: st.DataObject) -> None:
    """Typed or not, a value goes to the same task."""
    values = {
        pa.string(): st.text(),
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.bool_(): st.booleans(),
        pa.float64(): st.floats(),
    }
    column = make_column(Field("f", kind), data.draw(st.lists(values[kind] | st.none())))
    assert column.hashes().tolist() == [hash_value(value) for value in column.to_list()]
