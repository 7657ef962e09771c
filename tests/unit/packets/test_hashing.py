"""The canonical hash: fixed values, the same everywhere, and what it refuses."""

import datetime
import decimal
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkstorm.errors import EmitError
from sparkstorm.packets.columns import CoderError, make_column
from sparkstorm.packets.hashing import hash_array, hash_value, hash_values
from sparkstorm.streams import Field

UTC = datetime.UTC
SRC = Path(__file__).parents[3] / "src"

VERSION_1: list[tuple[Any, int]] = [
    ("storm", 0xA35582D66B9AFBC3),
    ("", 0xF598333D8025F6C3),
    ("a", 0x62FDE72C9736721F),
    ("exactly8", 0xF2D181E7CEF17380),
    ("nine char", 0xBC1E3DA195D8DE46),
    ("é" * 32, 0x2550A97E726E03AC),
    ("x" * 65, 0x36C9C5DF1F7285C0),
    (b"storm\0", 0x1145B4A23FB493DD),
    (None, 0xFF51AFD7ED558CCD),
    (0, 0x294B9A2C8FE1C296),
    (-1, 0x268D16D910B6E9FD),
    (2**63 - 1, 0x88D8AA879B166C02),
    (-(2**63), 0xDA794FB6481284E0),
    (2**63, 0x0C42DDDB61B1A2A7),
    (10**400, 0xC6A2CFFF3D421203),
    (True, 0x4D576BD173027580),
    (1.5, 0xA9F1E5D149B81690),
    (float("inf"), 0xA1C356097ECB3819),
    (float("nan"), 0x79561FB88D02F57D),
    (Decimal("0.1"), 0x369784ACE82802BA),
    (Decimal("1E+400"), 0xC6A2CFFF3D421203),
    (datetime.date(2024, 2, 29), 0xD291A2A3DB701F22),
    (datetime.datetime(2024, 2, 29, 12, 30, 0, 250, tzinfo=UTC), 0x33A4C815D0E0021D),
    (datetime.datetime(1969, 12, 31, 23, 59), 0x77403EBD19FE12EE),  # noqa: DTZ001 - naive
    ((), 0x165667B19E3779F9),
    (("storm", 7, None), 0x48E99A22620EBC22),
]


@pytest.mark.parametrize(("value", "expected"), VERSION_1, ids=lambda value: repr(value)[:40])
def test_version_1_never_changes(value: Any, expected: int) -> None:
    """A key goes to the task where its state is, also after an upgrade: never edit these."""
    assert hash_value(value) == expected


@pytest.mark.process
def test_the_hash_is_the_same_in_another_process() -> None:
    """Python's own hash of text is not: it has a seed of its own in each process."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from sparkstorm.packets.hashing import hash_values\n"
        "print(*hash_values(['storm', ('a', 1), b'x' * 99, None, 1.5]), hash('storm'))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(SRC)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    ours = hash_values(["storm", ("a", 1), b"x" * 99, None, 1.5]).tolist()
    assert runs[0][:-1] == runs[1][:-1] == [str(number) for number in ours]
    assert runs[0][-1] != runs[1][-1]


EQUAL: dict[str, list[Any]] = {
    "zero": [0, 0.0, -0.0, False, Decimal(0), Decimal("-0.00"), np.int8(0), np.bool_(False)],
    "one": [1, 1.0, True, Decimal(1), Decimal("1.000"), np.float32(1)],
    "beyond 64 bits": [2**63, 2.0**63, Decimal(2**63), np.uint64(2**63)],
    "a fraction": [0.5, Decimal("0.5"), Decimal("5E-1"), np.float16(0.5)],
    "infinity": [float("inf"), Decimal("Infinity")],
    "no number": [float("nan"), -float("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("-NaN1")],
    "beyond floats": [10**400, Decimal("1E+400"), Decimal("10E+399")],
    "beyond printing": [10**5000, Decimal("1E+5000")],
    "below floats": [-(10**5000), Decimal("-1E+5000")],
    "between floats": [2**64 + 1, Decimal(2**64 + 1)],
    "just beyond floats": [15 * 10**308, Decimal("1.5E+309")],
}


@pytest.mark.parametrize("values", EQUAL.values(), ids=EQUAL)
def test_equal_numbers_hash_equal(values: list[Any]) -> None:
    """Whatever their type and size."""
    assert len({hash_value(value) for value in values}) == 1


def test_a_huge_exponent_costs_nothing() -> None:
    """The number is never written out: it would fill the memory."""
    assert hash_value(Decimal("1E+999999999")) != hash_value(Decimal("1E-999999999"))


def test_decimals_do_not_depend_on_the_context() -> None:
    """The precision of a thread must not decide where a tuple goes."""
    number = Decimal("1.1234567890123456789012345678901")
    expected = hash_value(number)
    with decimal.localcontext(prec=5):
        assert hash_value(number) == expected
    assert hash_value(Decimal("1.1234567890123456789012345678902")) != expected


def test_text_is_its_bytes() -> None:
    """A string and its UTF-8 bytes, of any kind of bytes, are one key."""
    assert (
        hash_value("Größe")
        == hash_value("Größe".encode())
        == hash_value(bytearray("Größe", "utf8"))
    )


def test_text_that_is_no_unicode_has_a_hash() -> None:
    """File names may hold lone surrogates."""
    assert hash_value("\ud800") != hash_value("\ud801")


def test_a_moment_is_one_in_every_time_zone() -> None:
    """With a zone it is the moment that counts, without one what the clock shows."""
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
    assert hash_value(moment) == hash_value(moment.astimezone(ZoneInfo("Asia/Tokyo")))
    naive = moment.replace(tzinfo=None)
    assert hash_value(naive) != hash_value(naive.replace(hour=8))


class _Zone(datetime.tzinfo):
    def dst(self, when: datetime.datetime | None) -> None:
        return None

    def tzname(self, when: datetime.datetime | None) -> None:
        return None


class _NoOffset(_Zone):
    def utcoffset(self, _: datetime.datetime | None) -> None:
        return None


def test_a_zone_without_an_offset_is_none() -> None:
    """Python takes such times for naive ones, and so do we."""
    naive = datetime.datetime(2024, 5, 6)  # noqa: DTZ001 - for naive values
    assert hash_value(naive.replace(tzinfo=_NoOffset())) == hash_value(naive)


def test_days_before_1970_have_hashes() -> None:
    """Also those of the first and last year."""
    days = [datetime.date.min, datetime.date(1969, 12, 31), datetime.date.max]
    assert hash_array(pa.array(days)).tolist() == [hash_value(day) for day in days]


def test_tuples_are_hashed_by_their_parts() -> None:
    """Their order, number and nesting matter."""
    keys = [(), (1,), (1, 2), (2, 1), ((1,), 2), (1, (2,)), ("1", "2"), (None,), (None, None)]
    assert len({hash_value(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    "value",
    [["a"], {"a": 1}, {1}, object(), 1j, range(3), datetime.time(1), ("fine", ["not"])],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused(value: Any) -> None:
    """They have no hash that is the same everywhere; the message says what has."""
    with pytest.raises(EmitError, match=r"has no stable hash\. Group by text, bytes, numbers"):
        hash_value(value)


class Lost(_Zone):
    """A time zone of the user's that does not know where it is."""

    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        raise KeyError("nowhere")


def deep() -> tuple[Any, ...]:
    """Tuples within tuples, deeper than Python can go."""
    value: tuple[Any, ...] = ()
    for _ in range(100_000):
        value = (value,)
    return value


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: pd.NaT, id="NaT"),
        pytest.param(lambda: datetime.datetime(2024, 1, 1, tzinfo=Lost()), id="zone"),
        pytest.param(deep, id="deep"),
    ],
)
def test_values_that_raise_are_refused(make: Callable[[], Any]) -> None:
    """By the one error whose tuple alone fails for it, and which names the row in a column."""
    value = make()
    with pytest.raises(EmitError, match="cannot group by a "):
        hash_value(value)
    with pytest.raises(CoderError) as caught:
        make_column(Field("f"), [1, value, 2]).hashes()
    assert caught.value.rows == [1]


def test_arrays_of_other_types_are_refused() -> None:
    """An untyped stream may carry lists; it cannot be grouped by them."""
    with pytest.raises(EmitError, match="a list has no stable hash"):
        hash_array(pa.array([[1], [2]]))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([], pa.string()),
        pa.array(["a", "b"])[2:],
        pa.array([], pa.int64()),
        pa.array([], pa.null()),
    ],
)
def test_an_empty_array_has_no_hashes(array: pa.Array) -> None:
    """Of text, of numbers, of nothing."""
    assert hash_array(array).tolist() == []


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
def test_text_of_any_length_hashes_alike_in_an_array(length: int) -> None:
    """Around a word of eight bytes, and where long text begins, beside any neighbours."""
    values = ["x" * length, "", "y" * 70, "x" * length]
    assert hash_array(pa.array(values)).tolist() == [hash_value(value) for value in values]
    assert hash_array(pa.array(values)[2:]).tolist() == [hash_value(value) for value in values[2:]]
