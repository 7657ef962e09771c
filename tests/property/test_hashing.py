"""The vectorised hashes against their definition, :func:`hash_value`."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkstorm.acking.ids import mix64
from sparkstorm.packets.hashing import combine, hash_array, hash_value, hash_values

UTC = datetime.UTC

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), st.text(max_size=20) | st.text(min_size=60, max_size=80)),
    "binary": (pa.binary(), st.binary(max_size=70) | st.sampled_from([b"", b"\0", b"\0" * 8])),
    "large_string": (pa.large_string(), st.text(max_size=10)),
    "int8": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint8": (pa.uint8(), st.integers(0, 2**8 - 1)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats() | st.integers(-(2**53), 2**53).map(float)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(UTC))),
    "timestamp_ntz": (pa.timestamp("us"), st.datetimes()),
    "timestamp_s": (pa.timestamp("s"), st.datetimes().map(lambda t: t.replace(microsecond=0))),
    "decimal": (pa.decimal128(10, 3), st.decimals(-999, 999, places=3)),
}


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_an_array_hashes_as_its_values(name: str, data: st.DataObject) -> None:
    """Of every type, with nulls and without, also for a slice out of the middle."""
    kind, values = TYPES[name]
    nullable = values | st.none() if data.draw(st.booleans(), label="nulls") else values
    array = pa.array(data.draw(st.lists(nullable, max_size=12)), kind)
    start = data.draw(st.integers(0, len(array)), label="start")
    part = array.slice(start, data.draw(st.integers(0, len(array)), label="length"))
    assert hash_array(part).tolist() == [hash_value(value) for value in part.to_pylist()]
    assert hash_array(part).dtype == np.uint64


@given(st.integers() | st.integers(-(2**63) - 9, -(2**63) + 9) | st.integers(2**63 - 9, 2**64 + 9))
def test_equal_numbers_hash_equal(number: int) -> None:
    """Whatever their type: integer, float, boolean, decimal, or one of numpy's."""
    expected = hash_value(number)
    assert hash_value(Decimal(number)) == expected
    assert hash_value(Decimal(number).scaleb(3).scaleb(-3) if abs(number) < 10**20 else number) == (
        expected
    )
    if abs(number) < 2**1000 and float(number) == number:
        assert hash_value(float(number)) == hash_value(np.float64(number)) == expected
    if number in (0, 1):
        assert hash_value(bool(number)) == hash_value(np.bool_(number)) == expected
    if -(2**63) <= number < 2**63:
        assert hash_value(np.int64(number)) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_hashes_as_the_decimal_that_it_is(number: float) -> None:
    """A decimal with the very same value, not one with the same text."""
    assert hash_value(Decimal(number)) == hash_value(number)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_zeros_behind_a_decimal_do_not_matter(number: Decimal, zeros: int) -> None:
    """1.5, 1.50 and 15E-1 are one number, however many digits the context has."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, digits + (0,) * zeros, exponent - zeros))
    assert Fraction(longer) == Fraction(number)
    assert hash_value(longer) == hash_value(number)


@given(st.floats() | st.integers(), st.floats() | st.integers())
def test_different_numbers_hash_differently(one: float, other: float) -> None:
    """A clash of 64-bit hashes would be a find."""
    assume(one != other and not (math.isnan(one) and math.isnan(other)))
    assert hash_value(one) != hash_value(other)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1))
def test_combined_hashes_depend_on_the_order_of_the_fields(rows: list[tuple[int, int]]) -> None:
    """(a, b) and (b, a) are different keys; one field's hash is itself.

    They clash only where the two hashes differ in nothing but the highest bit: 1 in 2^63.
    """
    one, two = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
    assert combine([one]).tolist() == one.tolist()
    both = combine([one, two])
    assert both.tolist() == mix64(one * np.uint64(31) + two).tolist()
    differ = (one ^ two) << np.uint64(1) != 0
    assert not (both == combine([two, one]))[differ].any()


@given(st.lists(st.text(max_size=3) | st.integers() | st.none() | st.tuples(st.integers())))
def test_mixed_values_are_hashed_one_by_one(values: list[Any]) -> None:
    """Their order is kept."""
    assert hash_values(values).tolist() == [hash_value(value) for value in values]
