"""From records to messages: each field, and what becomes of bytes that cannot be read."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from sparkstorm import ConfigError, EmitError, Split, Unreadable
from sparkstorm.formats import writer_of
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.formats import reader_of
from sparkstorm.kafka.records import FIELDS, Shape, origin_of, wanted_ranges
from sparkstorm.streams import declare

PARTITION = Partition("orders", 3)


@dataclass
class Line:
    """A record."""

    at: int
    data: bytes | None
    name: bytes | None = None
    millis: int = -1
    more: Sequence[tuple[str, bytes | None]] | None = None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def timestamp(self) -> tuple[int, int]:
        return (0, 0) if self.millis < 0 else (1, self.millis)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return None if self.more is None else list(self.more)


def shape(fields: str, **more: Any) -> Shape:
    given = {"key": reader_of("string"), "value": reader_of("json"), **more}
    return Shape(tuple(fields.split()), **given)


def test_every_field() -> None:
    """Nothing of a record is out of reach."""
    made = shape(" ".join(FIELDS)).messages(
        PARTITION, 10, [Line(12, b"[1]", b"k", 1500, [("h", b"x"), ("n", None)]), Line(13, None)]
    )
    assert made.positions == [2, 3]
    assert made.columns == {
        "topic": ["orders", "orders"],
        "partition": [3, 3],
        "offset": [12, 13],
        "timestamp": [datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC), None],
        "key": ["k", None],
        "value": [[1], None],
        "headers": [[{"key": "h", "value": b"x"}, {"key": "n", "value": None}], []],
        "index": [0, 0],
    }
    assert list(made.columns) == list(FIELDS)
    assert not made.unfit


def test_the_types_of_the_fields_are_types() -> None:
    """They are declared in the words of Spark."""
    typed = ", ".join(f"{name} {kind or 'binary'}" for name, kind in FIELDS.items())
    assert declare(typed)["default"].names == tuple(FIELDS)


def test_what_cannot_be_read_is_unfit() -> None:
    """Only those records are, and the others keep their places."""
    lines = [Line(0, b"1"), Line(1, b"{"), Line(2, b"3", b"\xff"), Line(5, b"4", b"k")]
    made = shape("key value").messages(PARTITION, 0, lines)
    assert made.positions == [0, 5]
    assert made.columns == {"key": [None, "k"], "value": [1, 4]}
    assert [type(why) for why in made.unfit.values()] == [Unreadable, Unreadable]
    text = {place: str(why) for place, why in made.unfit.items()}
    assert "its value is unreadable: JSONDecodeError" in text[1]
    assert "its key is unreadable: UnicodeDecodeError" in text[2]


def test_what_is_not_a_field_is_not_read() -> None:
    """A broken key is no matter if nobody asks for keys."""
    made = shape("value").messages(PARTITION, 0, [Line(0, b"1", b"\xff")])
    assert (made.columns, made.unfit) == ({"value": [1]}, {})


def test_a_value_of_many_tuples() -> None:
    """Each item has its index; a message without items, and a tombstone, have no tuple."""
    lines = [
        Line(0, b'["a","b"]', b"k"),
        Line(1, b"[]"),
        Line(2, None),
        Line(3, b'"x"'),
        Line(4, b"[7]"),
    ]
    made = shape("key value index", many=True).messages(PARTITION, 0, lines)
    assert made.positions == [0, 0, 4]
    assert made.columns == {"key": ["k", "k", None], "value": ["a", "b", 7], "index": [0, 1, 0]}
    assert made.unfit == {3: Unreadable("its value is no list but str, although many is set")}


def test_origin_keeps_the_bytes() -> None:
    """A dead letter shows what the broker holds."""
    assert origin_of(Line(9, b"\xff", b"k", 0, [("h", b"1")])) == {
        "offset": 9,
        "timestamp": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        "millis": 0,
        "key": b"k",
        "value": b"\xff",
        "headers": [["h", b"1"]],
    }


@pytest.mark.parametrize(
    ("only", "ranges"),
    [
        (None, [(100, 105)]),
        ((0, 4), [(100, 105)]),
        ((4,), [(104, 105)]),
        ((0, 5000), [(100, 101), (5100, 5101)]),
        ((5000, 0), [(100, 101), (5100, 5101)]),
    ],
)
def test_near_offsets_are_read_through(only: Any, ranges: Any) -> None:
    """A seek costs as much as some thousand records."""
    assert wanted_ranges(Split(count=5, data={"start": 100}, only=only)) == ranges


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="no field 'vlaue': choose from topic"):
        shape("vlaue")
    with pytest.raises(ConfigError, match="unknown format 'avro'"):
        reader_of("avro")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown format 'avro'"):
        writer_of("avro")  # type: ignore[arg-type]


def test_writers() -> None:
    """Text is UTF-8, JSON is short, and None is no value."""
    assert [writer_of(name)(None) for name in ("bytes", "string", "json")] == [None] * 3
    assert writer_of("string")("é") == "é".encode()
    assert writer_of("json")({"a": ["é"]}) == '{"a":["é"]}'.encode()
    with pytest.raises(EmitError, match="'x' is not bytes but str"):
        writer_of("bytes")("x")
