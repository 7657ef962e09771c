"""Bytes to values and back: the names that users write, and functions of their own."""

import json
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from sparkstorm.errors import ConfigError

__all__ = ["Format", "Reader", "Writer", "reader_of", "type_of", "writer_of"]

Reader: TypeAlias = Callable[[bytes], Any]
"""From a record's bytes to a value; raises if it cannot."""

Writer: TypeAlias = Callable[[Any], bytes | None]
"""From a value to a record's bytes."""

Format: TypeAlias = Literal["bytes", "string", "json"]
"""The formats that have a name."""

_READERS: dict[str, Reader] = {
    "bytes": bytes,
    "string": lambda data: data.decode("utf-8"),
    "json": json.loads,
}
_TYPES: dict[str, str] = {"bytes": "binary", "string": "string"}


def reader_of(given: Format | Reader) -> Reader:
    """Return the function that a format names.

    >>> reader_of("json")(b'{"a": 1}')
    {'a': 1}

    Raises:
        ConfigError: there is no such format.
    """
    if callable(given):
        return given
    try:
        return _READERS[given]
    except KeyError:
        raise _unknown(given) from None


def type_of(given: Format | Reader) -> str | None:
    """The type of the field that it makes, in Spark's words; None if that is not known."""
    return None if callable(given) else _TYPES.get(given)


def writer_of(given: Format | Writer) -> Writer:
    """Return the function that writes a format; each takes None for "no value".

    >>> writer_of("json")({"a": 1})
    b'{"a":1}'

    Raises:
        ConfigError: there is no such format.
    """
    match given:
        case "bytes":
            return _as_bytes
        case "string":
            return lambda value: None if value is None else str(value).encode()
        case "json":
            return lambda value: None if value is None else _as_json(value)
    if callable(given):
        return given
    raise _unknown(given)


def _as_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"{value!r} is not bytes but {type(value).__name__}: choose another format")


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _unknown(given: object) -> ConfigError:
    return ConfigError(f"unknown format {given!r}: use 'bytes', 'string', 'json' or a function")
