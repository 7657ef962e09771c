"""From a tuple to the record that is written of it (on an executor)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, final

from sparkstorm.components.functions import check_function
from sparkstorm.components.wiring import Wiring
from sparkstorm.errors import ConfigError, EmitError
from sparkstorm.formats import Writer
from sparkstorm.texts.user_errors import refuse_work
from sparkstorm.tuples import Tuple

__all__ = ["Header", "Outgoing", "RecordMaker", "Selector", "TopicSelector", "size_of"]

Selector: TypeAlias = str | Callable[[Tuple], Any]
"""The name of a field, or a function of the tuple."""

TopicSelector: TypeAlias = str | Callable[[Tuple], str]
"""The name of a topic, or a function of the tuple that returns one."""

Header: TypeAlias = tuple[str, bytes | None]

Outgoing: TypeAlias = tuple[
    str, bytes | None, bytes | None, tuple[Header, ...], int | None, int | None
]
"""Topic, value, key, headers, partition and milliseconds since 1970; None where the client chooses.

A plain tuple, since checkpoints keep it.
"""

_MOST_PARTITIONS = 1 << 31
_MOST_MILLIS = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_SELECTORS = ("value", "key", "partition", "timestamp")
"""The arguments that may name a field."""

_OVERHEAD = 100
"""Bytes that a record takes beside its content, and more than that."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMaker:
    """Makes records of tuples. What it returns, a producer takes: all of it is checked here.

    Attributes:
        topic: its name, or a function of the tuple.
        value: the field that is written, or a function of the tuple.
        write_value: how.
        key: the same for the key; None for no key.
        write_key: how.
        headers: a function of the tuple that returns (name, bytes) pairs.
        partition: the field or function that chooses the partition; None for the key's hash.
        timestamp: the field or function that gives the time; None for the time of sending.
    """

    topic: TopicSelector
    value: Selector
    write_value: Writer
    key: Selector | None
    write_key: Writer
    headers: Callable[[Tuple], Sequence[Header]] | None
    partition: Selector | None = None
    timestamp: Selector | None = None

    def __post_init__(self) -> None:
        if not self.topic:
            raise ConfigError("topic is empty: name the topic to write to, or give a function")
        for name in ("topic", *_SELECTORS):
            check_function(name, getattr(self, name), ["tup"])
        check_function("headers", self.headers, ["tup"], may_yield=True)

    def faults(self, wiring: Wiring) -> Iterator[str]:
        """Find named fields that a stream lacks."""
        chosen = {name: getattr(self, name) for name in _SELECTORS}
        for stream, _, fields in wiring.inputs():
            for name, field in chosen.items():
                if isinstance(field, str) and field not in fields:
                    yield (
                        f"its {name} names the field {field!r}, but the stream {stream!r} has the "
                        f"fields {', '.join(fields) or 'none'}"
                    )

    def record(self, tup: Tuple) -> Outgoing:
        """Return the record of a tuple.

        Raises:
            EmitError: something cannot be written, or a partition or a time is out of range.
        """
        topic = _called("topic", self.topic, tup) if callable(self.topic) else self.topic
        if not isinstance(topic, str) or not topic:
            raise EmitError(f"{topic!r} is no name of a topic")
        value = _written("value", self.value, self.write_value, tup)
        key = None if self.key is None else _written("key", self.key, self.write_key, tup)
        headers = () if self.headers is None else tuple(map(_header, self.headers(tup)))
        partition = _partition(_selected("partition", self.partition, tup))
        millis = _millis(_selected("timestamp", self.timestamp, tup))
        return topic, value, key, headers, partition, millis


def size_of(record: Outgoing) -> int:
    """About how many bytes a record takes; rather more than less."""
    _, value, key, headers, *_ = record
    content = len(value or b"") + len(key or b"")
    names = sum(len(name.encode()) + len(data or b"") for name, data in headers)
    return content + names + _OVERHEAD * (1 + len(headers))


def _written(name: str, selector: Selector, write: Writer, tup: Tuple) -> bytes | None:
    data = write(_selected(name, selector, tup))
    if data is not None and not isinstance(data, bytes):
        raise EmitError(f"its {name} is written as {type(data).__name__}, not as bytes")
    return data


def _header(pair: Header) -> Header:
    name: object = pair[0]
    data: object = pair[1]
    if not isinstance(name, str) or not isinstance(data, bytes | None):
        raise EmitError(f"{pair!r} is no header: it takes a name and bytes")
    return name, data


def _selected(name: str, selector: Selector | None, tup: Tuple) -> object:
    if selector is None:
        return None
    return _called(name, selector, tup) if callable(selector) else tup[selector]


def _called(name: str, function: Callable[[Tuple], object], tup: Tuple) -> object:
    result = function(tup)
    refuse_work(result, name)
    return result


def _partition(found: object) -> int | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise EmitError(f"{found!r} is no partition: give its number")
    if not 0 <= found < _MOST_PARTITIONS:
        raise EmitError(f"{found} is no partition: they count from 0")
    return found


def _millis(found: object) -> int | None:
    if isinstance(found, datetime):
        if found.tzinfo is None:
            raise EmitError(f"{found} is a time without a time zone: give it one")
        found = (found - _EPOCH) // _MILLISECOND
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise EmitError(f"{found!r} is no time: give a datetime, or milliseconds since 1970")
    if not 0 < found < _MOST_MILLIS:  # the client takes 0 for "now"
        raise EmitError(f"{found} is no time after 1970 in milliseconds")
    return found
