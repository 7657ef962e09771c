"""Python values as JSON, and back without loss.

JSON's own types stand for themselves. Any other value is an object with the key ``$``, its type,
and ``v``, its content. Nothing is ever pickled: otherwise anyone who can write to the folder of
letters could run code in the driver.
"""

import base64
import datetime
import json
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, final
from zoneinfo import ZoneInfo

__all__ = ["Json", "Unwritable", "from_json", "is_whole", "to_json"]

Json: TypeAlias = Any
"""The types :mod:`json` accepts."""

_TAG = "$"
_LONGEST_REPR = 10_000
_DEEPEST = 100
_MOST_BITS = 8192


@final
@dataclass(frozen=True, slots=True)
class Unwritable:
    """The stand-in for a value JSON cannot carry: its type and its ``repr``, for people."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


def to_json(value: object) -> Json:
    """Return a value as JSON; a value that cannot be written becomes its ``repr``.

    >>> to_json([1, b"x", (None,)])
    [1, {'$': 'bytes', 'v': 'eA=='}, {'$': 'tuple', 'v': [None]}]
    """
    return _write(value, ())


def from_json(data: Json) -> Any:
    """Return the value written by :func:`to_json`.

    >>> from_json({"$": "decimal", "v": "1.50"})
    Decimal('1.50')

    Raises:
        ValueError: the JSON is not from :func:`to_json`.
    """
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    if _TAG not in data:
        return {key: from_json(item) for key, item in data.items()}
    if data[_TAG] == "repr":
        return Unwritable(data["type"], data["v"])
    reader = _READERS.get(data[_TAG])
    if reader is None:
        raise ValueError(f"a value has the unknown tag {data[_TAG]!r}")
    return reader(data["v"])


def is_whole(value: object) -> bool:
    """Whether a value read from JSON is complete: no part is :class:`Unwritable`."""
    if isinstance(value, dict):
        return all(is_whole(key) and is_whole(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_whole, value))
    return not isinstance(value, Unwritable)


def _write(value: object, around: tuple[int, ...]) -> Json:
    """Write a value that lies inside some containers (by ``id``)."""
    kind = type(value)
    if value is None or kind in (str, bool):
        return value
    if (kind is int and _is_small(value)) or (kind is float and _is_finite(value)):
        return value
    if id(value) in around or len(around) > _DEEPEST:
        return _as_text(value)
    if kind is list:
        return _write_all(value, value, around)
    if kind is dict:
        return _write_dict(value, around)
    if kind is tuple:
        return {_TAG: "tuple", "v": _write_all(value, value, around)}
    if kind in (set, frozenset):
        # Sorted, so that equal sets have equal JSON: letter ids are digests of it.
        items = sorted(_write_all(value, value, around), key=_in_order)
        return {_TAG: kind.__name__, "v": items}
    writer = _WRITERS.get(kind)
    written = None if writer is None else writer[1](value)
    return _as_text(value) if writer is None or written is None else {_TAG: writer[0], "v": written}


def _write_all(items: Any, container: object, around: tuple[int, ...]) -> list[Json]:
    inside = (*around, id(container))
    return [_write(item, inside) for item in items]


def _write_dict(value: Any, around: tuple[int, ...]) -> Json:
    items = _write_all(value.values(), value, around)
    if all(type(key) is str and key != _TAG for key in value):
        return dict(zip(value, items, strict=True))
    keys = _write_all(value, value, around)
    return {_TAG: "dict", "v": [list(pair) for pair in zip(keys, items, strict=True)]}


def _in_order(data: Json) -> str:
    return json.dumps(data, sort_keys=True)


def _is_small(value: object) -> bool:
    """Return whether Python can write an integer as text; it refuses much larger ones."""
    return isinstance(value, int) and value.bit_length() <= _MOST_BITS


def _as_text(value: object) -> Json:
    if type(value) is Unwritable:
        return {_TAG: "repr", "type": value.kind, "v": value.text}
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        text = "".join(("", repr(value)))  # a plain str, even of a user's subclass of str
    except BaseException as error:  # noqa: BLE001 - any error of any user's __repr__
        text = f"<{kind}, whose repr raises {type(error).__name__}>"
    return {_TAG: "repr", "type": kind, "v": text[:_LONGEST_REPR]}


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _write_moment(moment: datetime.datetime) -> Json:
    """Write a named zone by its name, since the offset alone has no summer time."""
    if isinstance(moment.tzinfo, ZoneInfo) and moment.tzinfo.key:
        local = moment.replace(tzinfo=None, fold=0).isoformat()
        return [local, moment.tzinfo.key, moment.fold]
    return moment.isoformat()


def _read_moment(data: Json) -> datetime.datetime:
    if isinstance(data, str):
        return datetime.datetime.fromisoformat(data)
    local, zone, fold = data
    return datetime.datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone), fold=fold)


def _write_time(moment: datetime.time) -> Json:
    """Return a time of day as text, or None: a named zone has no offset without a date."""
    lost = moment.tzinfo is not None and moment.utcoffset() is None
    return None if lost else moment.isoformat()


def _write_span(span: datetime.timedelta) -> Json:
    return [span.days, span.seconds, span.microseconds]


_WRITERS: dict[type, tuple[str, Callable[[Any], Json]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    bytearray: ("bytearray", lambda value: base64.b64encode(value).decode()),
    float: ("float", repr),
    complex: ("complex", repr),
    Decimal: ("decimal", str),
    uuid.UUID: ("uuid", str),
    datetime.datetime: ("datetime", _write_moment),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("time", _write_time),
    datetime.timedelta: ("timedelta", _write_span),
}
"""For a type its tag and how to write its content; None if a value cannot be written."""

_READERS: dict[str, Callable[[Json], Any]] = {
    "bytes": base64.b64decode,
    "bytearray": lambda data: bytearray(base64.b64decode(data)),
    "float": float,
    "complex": complex,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "datetime": _read_moment,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda data: datetime.timedelta(*data),
    "tuple": lambda data: tuple(from_json(item) for item in data),
    "set": lambda data: {from_json(item) for item in data},
    "frozenset": lambda data: frozenset(from_json(item) for item in data),
    "dict": lambda data: {from_json(key): from_json(item) for key, item in data},
}
