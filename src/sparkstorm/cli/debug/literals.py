"""Python literals of payloads: every type that dead letters carry has one."""

import datetime
import re
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from math import isfinite
from typing import Any

__all__ = ["literal", "quoted"]

_QUOTES = re.compile(r'\\.|"')
"""Everything that may be written differently between other quotes."""

_WIDTH = 88
"""The usual width of Python's formatters: a longer container gets a line for each item."""


def literal(value: Any, indent: int = 0, lead: int = 0) -> str:
    """Return Python's text of a value; the names of modules in it are to be imported.

    Args:
        value: a value as dead letters carry it.
        indent: the columns before a line of the text.
        lead: the characters before the text on its first line, and behind it.

    >>> literal({"n": [1, b"x"], "d": Decimal("1.50")})
    '{"n": [1, b"x"], "d": decimal.Decimal("1.50")}'
    """
    flat = _flat(value)
    if indent + lead + len(flat) <= _WIDTH or not value:
        return flat
    if isinstance(value, dict):
        return _broken(_pairs(value, indent + 4), "{}", indent)
    if isinstance(value, list | tuple | set):
        items = (literal(item, indent + 4, 1) for item in _ordered(value))
        brackets = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
        return _broken(items, brackets, indent)
    name, bracket, rest = flat.partition("(")
    if not bracket or isinstance(value, str | bytes):
        return flat
    inner = rest.removesuffix(")")
    if isinstance(value, frozenset):
        inner = literal(set(value), indent + 4)
    return f"{name}(\n{' ' * (indent + 4)}{inner}\n{' ' * indent})"


def quoted(text: str | bytes) -> str:
    r"""Return the literal of a text or bytes, in double quotes if these need no escapes.

    >>> quoted("it's"), quoted('a "b"'), quoted(b"\x00")
    ('"it\'s"', '\'a "b"\'', 'b"\\x00"')
    """
    shown = repr(text)
    if shown[-1] == '"':
        return shown
    prefix, inner = shown[: shown.index("'")], shown[shown.index("'") + 1 : -1]
    if inner.count('"') > inner.count("'"):
        return shown
    return f'{prefix}"{_QUOTES.sub(_requoted, inner)}"'


def _requoted(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _pairs(value: dict[Any, Any], indent: int) -> Iterable[str]:
    for key, item in value.items():
        name = _flat(key)
        yield f"{name}: {literal(item, indent, len(name) + 3)}"


def _broken(items: Iterable[str], brackets: str, indent: int) -> str:
    lines = "".join(f"{' ' * (indent + 4)}{item},\n" for item in items)
    return f"{brackets[0]}\n{lines}{' ' * indent}{brackets[1]}"


def _flat(value: Any) -> str:
    write = _WRITERS.get(type(value), repr)
    return write(value)


def _join(items: Iterable[Any]) -> str:
    return ", ".join(map(_flat, items))


def _tuple(value: tuple[Any, ...]) -> str:
    return f"({_join(value)},)" if len(value) == 1 else f"({_join(value)})"


def _dict(value: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{_flat(k)}: {_flat(v)}" for k, v in value.items()) + "}"


def _ordered(value: Iterable[Any]) -> Iterable[Any]:
    return sorted(value, key=repr) if isinstance(value, set) else value


def _set(value: set[Any]) -> str:
    return "{" + _join(_ordered(value)) + "}" if value else "set()"


def _frozenset(value: frozenset[Any]) -> str:
    return f"frozenset({_set(set(value))})" if value else "frozenset()"


def _float(value: float) -> str:
    return repr(value) if isfinite(value) else f'float("{value!r}")'


def _moment(value: object) -> str:
    # The only quotes are around a time zone's name.
    return repr(value).replace("'", '"').replace("ZoneInfo(key=", "ZoneInfo(")


_WRITERS: dict[type, Callable[[Any], str]] = {
    str: quoted,
    bytes: quoted,
    bytearray: lambda value: f"bytearray({quoted(bytes(value))})",
    float: _float,
    complex: lambda value: f'complex("{value!r}")',
    Decimal: lambda value: f'decimal.Decimal("{value}")',
    uuid.UUID: lambda value: f'uuid.UUID("{value}")',
    datetime.datetime: _moment,
    datetime.date: _moment,
    datetime.time: _moment,
    datetime.timedelta: _moment,
    list: lambda value: f"[{_join(value)}]",
    tuple: _tuple,
    dict: _dict,
    set: _set,
    frozenset: _frozenset,
}
