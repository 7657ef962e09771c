"""Output streams: their declarations, as field names with or without types.

A stream with typed fields (Spark's DDL, ``"word string, n long"``) travels as Arrow columns of
those types. A stream of names alone (``["word", "n"]``) takes any picklable value.
"""

import re
from collections import UserString
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import pyarrow as pa

from sparkstorm.errors import EmitError, TopologyError
from sparkstorm.texts.showing import shown

__all__ = ["DEFAULT_STREAM", "Field", "Outputs", "Stream", "declare", "parse_type", "values_of"]

DEFAULT_STREAM = "default"
"""The stream of an emit without a stream name, as in Storm."""

_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@final
@dataclass(frozen=True, slots=True)
class Field:
    """One field of a stream; ``type`` is None for a field of any picklable value."""

    name: str
    type: pa.DataType | None = None


@final
class Stream:
    """The declaration of one output stream.

    Args:
        fields: Spark DDL (``"word string, count long"``), or names (``["word", "count"]``, ``"word,
            count"``) for values of any type.
        direct: only :meth:`emit_direct` may write to the stream, and only direct groupings may read
            it.

    >>> Stream("word string, n long").names
    ('word', 'n')
    >>> Stream(["word"]).typed
    False
    """

    __slots__ = ("direct", "fields")

    def __init__(self, fields: "str | Iterable[str | Field]", direct: bool = False):
        self.fields: tuple[Field, ...] = _parse_fields(fields)
        self.direct = direct
        names = [field.name for field in self.fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TopologyError(f"a stream declares the field {twice[0]!r} twice: rename one")

    @property
    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def typed(self) -> bool:
        """Whether every field has a declared type."""
        return bool(self.fields) and all(field.type is not None for field in self.fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.fields == other.fields and self.direct == other.direct

    def __hash__(self) -> int:
        return hash((self.names, self.direct))

    def __repr__(self) -> str:
        text = ", ".join(f"{f.name} {f.type}" if f.type else f.name for f in self.fields)
        return f"Stream({text!r}{', direct=True' if self.direct else ''})"


Outputs: TypeAlias = "str | Sequence[str] | Stream | Mapping[str, str | Sequence[str] | Stream]"
"""The possible values of a component's ``outputs``: one stream, or several by name."""


def declare(outputs: Outputs) -> dict[str, Stream]:
    """Turn a component's ``outputs`` into its streams by name.

    >>> declare("word string")
    {'default': Stream('word string')}
    >>> sorted(declare({"default": ["word"], "errors": ["reason"]}))
    ['default', 'errors']
    """
    if isinstance(outputs, Mapping):
        return {name: _stream(value) for name, value in outputs.items()}
    stream = _stream(outputs)
    return {DEFAULT_STREAM: stream} if stream.fields or isinstance(outputs, Stream) else {}


def parse_type(text: str) -> pa.DataType:
    """Turn one Spark DDL type into its Arrow type.

    >>> parse_type("array<decimal(10,2)>")
    ListType(list<element: decimal128(10, 2)>)
    """
    text = text.strip()
    lowered = text.lower()
    if lowered in _SIMPLE:
        return _SIMPLE[lowered]
    decimal = re.fullmatch(r"(?:decimal|numeric)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", lowered)
    if decimal:
        return _decimal(text, int(decimal.group(1) or 10), int(decimal.group(2) or 0))
    nested = re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.IGNORECASE | re.DOTALL)
    if nested:
        return _parse_nested(nested.group(1).lower(), nested.group(2))
    raise TopologyError(
        f"unknown field type {text!r}: use Spark's names "
        f"({', '.join(_SIMPLE)}, decimal(p,s), array<…>, map<…>, struct<…>)"
    )


def _decimal(text: str, precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= 38 or scale > precision:
        raise TopologyError(
            f"{text} is not a decimal: it has 1 to 38 digits, no more of them after the point"
        )
    return pa.decimal128(precision, scale)


def _parse_nested(kind: str, inner: str) -> pa.DataType:
    parts = _split_top(inner)
    if kind == "array":
        return pa.list_(pa.field("element", parse_type(inner)))
    if kind == "map":
        if len(parts) != 2:
            raise TopologyError(f"map<{inner}> needs a key and a value type: map<string, long>")
        key = parse_type(parts[0])
        if pa.types.is_nested(key):
            raise TopologyError(f"map<{inner}> has the key {parts[0]}: keys are plain values")
        return pa.map_(key, parse_type(parts[1]))
    members = [re.split(r"\s*:\s*|\s+", part, maxsplit=1) for part in parts]
    untyped = next((member[0] for member in members if len(member) < 2), None)
    if untyped is not None:
        raise TopologyError(f"member {untyped!r} of struct<{inner}> has no type: struct<a: long>")
    names = [name for name, _ in members]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TopologyError(f"struct<{inner}> declares the member {twice[0]!r} twice: rename one")
    return pa.struct([pa.field(name, parse_type(rest)) for name, rest in members])


def _stream(value: "str | Sequence[str] | Stream") -> Stream:
    return value if isinstance(value, Stream) else Stream(value)


def _parse_fields(fields: object) -> tuple[Field, ...]:
    if not isinstance(fields, Iterable):
        raise TopologyError(f"a stream is declared by text or a list of names, not by {fields!r}")
    parts = _split_top(fields) if isinstance(fields, str) else fields
    parsed = [part if isinstance(part, Field) else _parse_field(part) for part in parts]
    typed = [field for field in parsed if field.type is not None]
    if typed and len(typed) != len(parsed):
        bare = next(field.name for field in parsed if field.type is None)
        raise TopologyError(
            f"field {bare!r} has no type although {typed[0].name!r} has one: "
            f"give every field of a stream a type, or none"
        )
    return tuple(parsed)


def _parse_field(text: object) -> Field:
    if not isinstance(text, str):
        raise TopologyError(f"{text!r} is not a field name but of type {type(text).__name__}")
    name, _, rest = text.strip().partition(" ")
    if not re.fullmatch(r"[^\W\d][\w\-.]*", name):
        raise TopologyError(f"{name!r} is not a field name: start with a letter, no spaces")
    return Field(name, parse_type(rest) if rest.strip() else None)


def _split_top(text: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part for part in (part.strip() for part in parts) if part]


def values_of(values: Any, names: Sequence[str], stream: str) -> Sequence[Any]:
    """Return the values of an emit in the order of the fields.

    Raises:
        EmitError: the emit is no sequence of values, but text, say, whose characters would become
            values; or its keys are not the fields.
    """
    kind = type(values)
    if kind is list or kind is tuple:
        return values  # type: ignore[no-any-return]
    if issubclass(kind, Mapping):
        if set(values) != set(names):
            raise EmitError(
                f"stream {stream!r} has the fields {', '.join(names) or 'none'}, but a "
                f"{kind.__name__} with other keys was emitted: {shown(values)}"
            )
        return [values[name] for name in names]
    # A table gives the names of its columns, and an array of no dimension nothing.
    is_row = issubclass(kind, Collection) and getattr(values, "ndim", 1) == 1
    if issubclass(kind, _NO_ROWS) or not is_row:
        raise EmitError(
            f"stream {stream!r} takes a list of values, one for each field, not {shown(values)} "
            f"({kind.__name__}): write […] around a single value"
        )
    return values if issubclass(kind, Sequence) else list(values)


_NO_ROWS = (str, UserString, bytes, bytearray, memoryview, AbstractSet)
"""Collections that are values themselves, or have no order."""
