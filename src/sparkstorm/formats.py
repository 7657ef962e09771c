"""Formats: bytes to values and back, by a name or by a function of the user's own."""

import json
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from sparkstorm.components.functions import check_function
from sparkstorm.errors import ConfigError, EmitError
from sparkstorm.texts.showing import shown

__all__ = ["Decode", "Format", "Writer", "reader_of", "type_of", "writer_of"]

Decode: TypeAlias = Callable[[bytes], Any]
"""From a message's bytes to a value; raises if it cannot."""

Writer: TypeAlias = Callable[[Any], bytes | None]
"""From a value to a message's bytes."""

Format: TypeAlias = Literal["bytes", "string", "json"]
"""The formats that have a name."""

_READERS: dict[str, Decode] = {
    "bytes": bytes,
    "string": lambda data: data.decode("utf-8"),
    # Given bytes, json guesses among the encodings of Unicode, and then complains of its guess.
    "json": lambda data: json.loads(data.decode("utf-8")),
}
_TYPES: dict[str, str] = {"bytes": "binary", "string": "string"}


def reader_of(given: Format | Decode) -> Decode:
    """Return the function that a format names.

    >>> reader_of("json")(b'{"a": 1}')
    {'a': 1}

    Raises:
        ConfigError: there is no such format, or a call of the function would not work.
    """
    if callable(given):
        check_function("a format's function", given, ["data"])
        return given
    try:
        return _READERS[given]
    except KeyError:
        raise _unknown(given) from None


def type_of(given: Format | Decode) -> str | None:
    """Return the type of the field that a format makes, in Spark's words; None if unknown."""
    return _TYPES.get(given) if isinstance(given, str) else None


def writer_of(given: Format | Writer) -> Writer:
    """Return the function that writes a format; each takes None for "no value".

    >>> writer_of("json")({"a": 1})
    b'{"a":1}'

    Raises:
        ConfigError: there is no such format, or a call of the function would not work.
    """
    match given:
        case "bytes":
            return _as_bytes
        case "string":
            return lambda value: None if value is None else str(value).encode()
        case "json":
            return lambda value: None if value is None else _as_json(value)
    if callable(given):
        check_function("a format's function", given, ["value"])
        return given
    raise _unknown(given)


def _as_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    raise EmitError(f"{value!r} is not bytes but {type(value).__name__}: choose another format")


def _as_json(value: Any) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EmitError(f"{shown(value)} cannot be written as JSON: {error}") from error


def _unknown(given: object) -> ConfigError:
    return ConfigError(f"unknown format {given!r}: use 'bytes', 'string', 'json' or a function")
