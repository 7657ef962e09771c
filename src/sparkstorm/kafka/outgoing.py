"""From a tuple to the record that is written of it (on an executor)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from sparkstorm.errors import ConfigError
from sparkstorm.kafka.formats import Writer
from sparkstorm.tuples import Tuple

__all__ = ["Header", "Outgoing", "RecordMaker", "Selector", "TopicSelector", "size_of"]

Selector: TypeAlias = str | Callable[[Tuple], Any]
"""The name of a field, or a function of the tuple."""

TopicSelector: TypeAlias = str | Callable[[Tuple], str]
"""The name of a topic, or a function of the tuple that returns one."""

Header: TypeAlias = tuple[str, bytes | None]

Outgoing: TypeAlias = tuple[str, bytes | None, bytes | None, tuple[Header, ...]]
"""Topic, value, key and headers. A plain tuple, since checkpoints keep it."""

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
    """

    topic: TopicSelector
    value: Selector
    write_value: Writer
    key: Selector | None
    write_key: Writer
    headers: Callable[[Tuple], Sequence[Header]] | None

    def __post_init__(self) -> None:
        if not self.topic:
            raise ConfigError("topic is empty: name the topic to write to, or give a function")

    def record(self, tup: Tuple) -> Outgoing:
        """Return the record of a tuple.

        Raises:
            TypeError: a function returned what cannot be written.
        """
        topic: object = self.topic(tup) if callable(self.topic) else self.topic
        if not isinstance(topic, str) or not topic:
            raise TypeError(f"{topic!r} is no name of a topic")
        value = _written("value", self.value, self.write_value, tup)
        key = None if self.key is None else _written("key", self.key, self.write_key, tup)
        headers = () if self.headers is None else tuple(map(_header, self.headers(tup)))
        return topic, value, key, headers


def size_of(record: Outgoing) -> int:
    """About how many bytes a record takes; rather more than less."""
    _, value, key, headers = record
    content = len(value or b"") + len(key or b"")
    names = sum(len(name.encode()) + len(data or b"") for name, data in headers)
    return content + names + _OVERHEAD * (1 + len(headers))


def _written(name: str, selector: Selector, write: Writer, tup: Tuple) -> bytes | None:
    data = write(selector(tup) if callable(selector) else tup[selector])
    if data is not None and not isinstance(data, bytes):
        raise TypeError(f"its {name} is written as {type(data).__name__}, not as bytes")
    return data


def _header(pair: Header) -> Header:
    name: object = pair[0]
    data: object = pair[1]
    if not isinstance(name, str) or not isinstance(data, bytes | None):
        raise TypeError(f"{pair!r} is no header: it takes a name and bytes")
    return name, data
