"""Kafka's formats: a format's name, a function of the bytes, or a function of the record too."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias, final

from sparkstorm import formats
from sparkstorm.components.functions import check_function
from sparkstorm.formats import Decode, Format

__all__ = ["Format", "Reader", "RecordInfo", "WithRecord", "reader_of", "type_of"]


class RecordInfo(Protocol):
    """The surroundings of a value: its topic, place, time and headers."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        ...

    @property
    def partition(self) -> int:
        """The number of the partition."""
        ...

    @property
    def offset(self) -> int:
        """The place of the record in its partition."""
        ...

    @property
    def timestamp(self) -> datetime | None:
        """The record's time in UTC; None for a record without one."""
        ...

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The record's headers, in order."""
        ...


@final
@dataclass(frozen=True, slots=True)
class WithRecord:
    """A reader that sees the record's topic, headers and timestamp beside the bytes.

    Executors call ``read`` for each key or value that is not None. An error makes that one record
    a dead letter.

    >>> WithRecord(lambda data, record: (record.topic, data.decode()))
    WithRecord(...)

    Args:
        read: a function of the bytes and a :class:`RecordInfo`.
    """

    read: Callable[[bytes, RecordInfo], Any]


Reader: TypeAlias = Decode | WithRecord
"""From a record's bytes to a value; raises if it cannot."""


def reader_of(given: Format | Reader) -> Reader:
    """Return the function that a format names.

    >>> reader_of("json")(b'{"a": 1}')
    {'a': 1}

    Raises:
        ConfigError: there is no such format, or a call of the function would not work.
    """
    if isinstance(given, WithRecord):
        check_function("WithRecord's function", given.read, ["data", "record"])
        return given
    return formats.reader_of(given)


def type_of(given: Format | Reader) -> str | None:
    """Return the type of the field that a format makes, in Spark's words; None if unknown."""
    return None if isinstance(given, WithRecord) else formats.type_of(given)
