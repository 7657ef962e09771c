"""Literals of payloads: Python reads the same value back, and formatters leave the text alone."""

import datetime
import decimal
import uuid
import zoneinfo
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.cli.debug.literals import literal
from sparkstorm.dead_letters.values import from_json, to_json

ZONES = st.sampled_from([None, datetime.UTC, zoneinfo.ZoneInfo("Europe/Berlin")])

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Po"]))
    | st.text("'\"\\{}\n", max_size=12)
    | st.binary()
    | st.binary().map(bytearray)
    | st.decimals(allow_nan=True)
    | st.uuids()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=ZONES)
    | st.timedeltas()
)
KEYS = st.integers() | st.text() | st.binary() | st.dates()

VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS, inner)
        | st.sets(KEYS)
        | st.frozensets(KEYS)
    ),
    max_leaves=20,
)

NAMES = {"datetime": datetime, "decimal": decimal, "uuid": uuid, "zoneinfo": zoneinfo}


@given(VALUES, st.integers(0, 80))
def test_a_literal_reads_as_the_same_value(value: Any, indent: int) -> None:
    """The letter's JSON tells values apart that are equal, as 1 and True, and equal ones alike."""
    kept = from_json(to_json(value))
    read = eval(literal(kept, indent), dict(NAMES))  # noqa: S307 - that is what is tested
    assert to_json(read) == to_json(kept)
    assert type(read) is type(kept)
