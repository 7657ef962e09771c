"""Pickles that are read value by value, and those that need not be tried."""

import datetime
import enum
import io
import pickle
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.packets.columns import pickled
from sparkstorm.packets.pickles import NotingPickler, Unread, load_each


@dataclass
class Point:
    """Read without any code of its own."""

    x: Any


class Refusing:
    """Cannot be read again."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


class Colour(enum.Enum):
    """Read by calling it."""

    RED = 1


class Proxy:
    """Asks for attributes that are not there yet as it is read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Kept:
    """Has a say in how it is read."""

    def __setstate__(self, state: Any) -> None:
        raise NotImplementedError


Pair = namedtuple("Pair", "one two")  # noqa: PYI024 - what is asked of it is its __new__


def dumped(values: list[Any]) -> tuple[bytes, bool]:
    buffer = io.BytesIO()
    pickler = NotingPickler(buffer)
    pickler.fast = True
    pickler.dump(values)
    return buffer.getvalue(), pickler.is_safe


VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary() | st.just(Colour.RED) | st.dates(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner) | inner.map(Point)
    ),
)


@given(st.lists(VALUES))
def test_each_value_comes_back(values: list[Any]) -> None:
    """Cut where the next one begins."""
    assert load_each(dumped(values)[0]) == values


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 1002, 2001])
def test_long_lists_come_back(count: int) -> None:
    """Which are pickled in portions of a thousand, and in frames."""
    values = [[n, "x" * (n % 100), Point(n)] if n % 3 else Point({"n": n}) for n in range(count)]
    assert load_each(dumped(values)[0]) == values


def test_a_value_that_cannot_be_read_keeps_none_of_the_others() -> None:
    """In its place stands why."""
    large = "x" * 100_000
    found = load_each(dumped([1, Refusing(), large, Point([Refusing()]), Point(2)])[0])
    why = Unread("ValueError: invalid literal for int() with base 10: 'no number'")
    assert found == [1, why, large, why, Point(2)]


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        ([1, "a", {2.5: (None, {True})}, frozenset([b"x"]), bytearray(b"y")], True),
        (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), True),
        (Decimal(1), True),
        (Point(1), True),
        (Point, True),
        ([np.float64(1), np.arange(3), np.datetime64("2024-01-01")], True),
        (np.array([Point(1)]), True),
        (np.array([Kept()]), False),
        (ValueError("x"), False),
        (Pair(1, 2), False),
        (Colour.RED, False),
        ([Proxy()], False),
        (Point(Kept()), False),
    ],
)
def test_only_what_runs_code_is_tried(value: Any, safe: bool) -> None:
    """Whatever it is held in."""
    assert dumped([value])[1] is safe


def test_noting_types_changes_no_byte() -> None:
    """Packets are as they always were."""
    values = [Point(1), Decimal(2), Colour.RED, {"a": [datetime.date(2024, 1, 1)]}]
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    pickler.dump(values)
    assert pickled(values) == buffer.getvalue()
