"""Declared streams: DDL, names, and what is wrong with them."""

import pyarrow as pa
import pytest

from sparkstorm.errors import TopologyError
from sparkstorm.streams import Field, Stream, declare, parse_type

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))])


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("string", pa.string()),
        ("  STRING ", pa.string()),
        ("binary", pa.binary()),
        ("boolean", pa.bool_()),
        ("tinyint", pa.int8()),
        ("byte", pa.int8()),
        ("smallint", pa.int16()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("integer", pa.int32()),
        ("bigint", pa.int64()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("real", pa.float32()),
        ("double", pa.float64()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("Numeric ( 38 , 38 )", pa.decimal128(38, 38)),
        ("array<int>", pa.list_(pa.field("element", pa.int32()))),
        ("map<string, decimal(10,2)>", pa.map_(pa.string(), pa.decimal128(10, 2))),
        ("struct<a: int, b: array<string>>", STRUCT),
        ("STRUCT<a int,b ARRAY<STRING>>", STRUCT),
        ("struct<>", pa.struct([])),
        (
            "array<map<string, struct<x: double>>>",
            pa.list_(pa.field("element", pa.map_(pa.string(), pa.struct([("x", pa.float64())])))),
        ),
    ],
)
def test_sparks_types_are_arrow_types(ddl: str, expected: pa.DataType) -> None:
    """In any case, with spaces where Spark allows them, nested to any depth."""
    assert parse_type(ddl) == expected


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("strong", r"unknown field type 'strong': use Spark's names \(string, binary, "),
        ("", "unknown field type ''"),
        ("int NOT NULL", "unknown field type 'int NOT NULL'"),
        ("array<>", "unknown field type ''"),
        ("array<int", "unknown field type 'array<int'"),
        ("array<int>>", "unknown field type 'int>'"),
        ("map<string>", r"map<string> needs a key and a value type: map<string, long>"),
        ("map<a, b, c>", "needs a key and a value type"),
        ("map<array<int>, int>", r"has the key array<int>: keys are plain values"),
        ("struct<a>", r"member 'a' of struct<a> has no type: struct<a: long>"),
        ("struct<a: int, b>", "member 'b' of struct"),
        ("struct<a: int, a: string>", "declares the member 'a' twice: rename one"),
        ("decimal(39)", r"decimal\(39\) is not a decimal: it has 1 to 38 digits"),
        ("decimal(0)", "is not a decimal"),
        ("decimal(5,7)", "no more of them after the point"),
    ],
)
def test_what_is_no_type_is_explained(ddl: str, message: str) -> None:
    """With what stands there, and what could."""
    with pytest.raises(TopologyError, match=message):
        parse_type(ddl)


def test_a_typed_stream_is_declared_by_ddl() -> None:
    """Or by a list of such fields; commas within types do not separate fields."""
    stream = Stream("word string, price decimal(10,2), tags map<string, int>")
    assert stream.names == ("word", "price", "tags")
    assert stream.typed
    assert stream == Stream(
        ["word string", "price decimal(10,2)", Field("tags", pa.map_(pa.string(), pa.int32()))]
    )


def test_an_untyped_stream_is_declared_by_names() -> None:
    """As a list, or as text with commas."""
    assert Stream("word, n") == Stream(["word", "n"]) == Stream(("word", Field("n")))
    assert not Stream("word, n").typed
    assert not Stream([]).typed


def test_streams_are_equal_by_fields_and_kind() -> None:
    """A direct stream is another one."""
    assert Stream("a") != Stream("a", direct=True)
    assert Stream("a") != Stream("a int")
    assert Stream("a") != "a"
    assert len({Stream("a"), Stream("a"), Stream("a", direct=True)}) == 2


def test_a_stream_shows_what_it_is() -> None:
    """Its fields, types, and whether it is direct."""
    assert repr(Stream("word string, n long")) == "Stream('word string, n int64')"
    assert repr(Stream(["a", "b"], direct=True)) == "Stream('a, b', direct=True)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("a int, b", "field 'b' has no type although 'a' has one: give every field"),
        (["a", "b long"], "field 'a' has no type although 'b' has one"),
        ("a, b, a", "a stream declares the field 'a' twice: rename one"),
        ("1a", "'1a' is not a field name: start with a letter"),
        ("a\tint", "is not a field name"),
        (["a", ""], "'' is not a field name"),
        (["a", 1], "1 is not a field name but of type int"),
        (None, "a stream is declared by text or a list of names, not by None"),
        (7, "not by 7"),
    ],
)
def test_what_is_no_stream_is_explained(fields: object, message: str) -> None:
    """A mistake in ``outputs`` is found when the topology is made."""
    with pytest.raises(TopologyError, match=message):
        Stream(fields)  # type: ignore[arg-type]


def test_outputs_are_one_stream_or_several() -> None:
    """One is the default stream, a mapping names them, and nothing is none."""
    assert declare("word string") == {"default": Stream("word string")}
    assert declare(["word"]) == {"default": Stream(["word"])}
    assert declare({"a": "x int", "b": Stream(["y"], direct=True)}) == {
        "a": Stream("x int"),
        "b": Stream(["y"], direct=True),
    }
    assert declare(()) == declare("") == declare([]) == declare({}) == {}


def test_a_stream_without_fields_is_one() -> None:
    """Its tuples say only that something happened; it must be asked for as a Stream."""
    assert declare(Stream([])) == {"default": Stream([])}
    assert declare({"done": []}) == {"done": Stream([])}


def test_outputs_of_a_wrong_kind_are_explained() -> None:
    """``outputs = None`` is an easy mistake."""
    with pytest.raises(TopologyError, match="not by None"):
        declare(None)  # type: ignore[arg-type]
