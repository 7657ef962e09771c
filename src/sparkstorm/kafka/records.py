"""The records of a split as messages for the engine, on an executor."""

import base64
import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, Protocol, final

from sparkstorm.components.spout import Messages, Split, Unreadable
from sparkstorm.errors import ConfigError
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.formats import Reader, WithRecord
from sparkstorm.kafka.offsets.ranges import Range

__all__ = [
    "FIELDS",
    "KeptRecord",
    "Record",
    "Shape",
    "kept_records",
    "kept_size",
    "origin_of",
    "to_kept",
    "wanted",
    "wanted_ranges",
]

FIELDS: dict[str, str] = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "key": "",
    "value": "",
    "headers": "array<struct<key:string,value:binary>>",
    "index": "int",
}
"""The fields that a message may have, with their types."""

_FRAME = 100
"""Bytes of a kept record beside its content."""

_SEEK_OVER = 4000
"""A gap of so many records is read and not sought: a seek takes as long."""


class Record(Protocol):
    """A record of the client library, which copies each part upon request only."""

    def offset(self) -> int:
        """The offset in the partition."""
        ...

    def key(self) -> bytes | None:
        """The key."""
        ...

    def value(self) -> bytes | None:
        """The value; None for a tombstone."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """The timestamp's kind (0: no timestamp), and milliseconds since 1970."""
        ...

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """The headers, in order."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a record's message: the fields, and the readers of the bytes.

    With ``many`` a value is a list, and each item becomes a tuple.
    """

    fields: tuple[str, ...]
    key: Reader
    value: Reader
    many: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in self.fields if name not in FIELDS]
        if unknown or not self.fields:
            what = f"there is no field {unknown[0]!r}" if unknown else "there are no fields"
            raise ConfigError(f"{what}: choose from {', '.join(FIELDS)}")

    def messages(self, partition: Partition, start: int, records: Sequence[Record]) -> Messages:
        """Turn records into messages of a split from the offset ``start``."""
        offsets = [record.offset() - start for record in records]
        made: dict[str, list[Any]] = {}
        bad: dict[int, Unreadable] = {}
        wanted_parts = {*self.fields, "value"} if self.many else {*self.fields}
        for name in sorted(wanted_parts - {"index"}):
            made[name], unreadable = self._part(name, partition, records)
            bad.update(unreadable)
        if self.many:
            bad.update(_no_lists(made["value"], bad))
        good = [n for n in range(len(records)) if n not in bad] if bad else range(len(records))
        if bad:
            made = {name: [values[n] for n in good] for name, values in made.items()}
        positions = [offsets[n] for n in good] if bad else offsets
        if self.many:
            positions, made = _one_by_one(positions, made)
        else:
            made["index"] = [0] * len(positions)
        return Messages(
            positions=positions,
            columns={name: made[name] for name in self.fields},
            unfit={offsets[n]: why for n, why in bad.items()},
        )

    def _part(
        self, name: str, partition: Partition, records: Sequence[Record]
    ) -> tuple[list[Any], dict[int, Unreadable]]:
        """Return one part of every record, and the records that cannot be read."""
        match name:
            case "topic":
                return [partition.topic] * len(records), {}
            case "partition":
                return [partition.number] * len(records), {}
            case "offset":
                return [record.offset() for record in records], {}
            case "timestamp":
                return _each("timestamp", _moment, records)
            case "headers":
                return _each("headers", _headers, records)
            case "key" if self.key is bytes:
                return [record.key() for record in records], {}
            case "value" if self.value is bytes:
                return [record.value() for record in records], {}
            case "key":
                return _each("key", _bytes_reader(self.key, partition, _key), records)
        return _each("value", _bytes_reader(self.value, partition, _value), records)


def _each(
    name: str, read: Callable[[Record], Any], records: Sequence[Record]
) -> tuple[list[Any], dict[int, Unreadable]]:
    """Read one part of every record; an error fails one record."""
    found: list[Any] = []
    bad: dict[int, Unreadable] = {}
    for number, record in enumerate(records):
        value = None
        try:
            value = read(record)
        except Exception as error:  # noqa: BLE001 - users' functions, and anybody's bytes
            bad[number] = Unreadable(f"its {name} is unreadable: {_words(error)}")
        found.append(value)
    return found, bad


def _words(error: Exception) -> str:
    """Name the error, whose own text may be unreadable, too."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - a user's __str__
        return type(error).__name__


def _key(record: Record) -> bytes | None:
    return record.key()


def _value(record: Record) -> bytes | None:
    return record.value()


def _bytes_reader(
    reader: Reader, partition: Partition, part: Callable[[Record], bytes | None]
) -> Callable[[Record], Any]:
    """Return the function that reads the key or the value of a record."""
    if isinstance(reader, WithRecord):
        with_record = reader.read

        def read_beside(record: Record) -> Any:
            data = part(record)
            return None if data is None else with_record(data, _Surroundings(partition, record))

        return read_beside
    plain = reader

    def read_alone(record: Record) -> Any:
        data = part(record)
        return None if data is None else plain(data)

    return read_alone


@final
class _Surroundings:
    """A record for readers; each part is made upon request."""

    __slots__ = ("_partition", "_record")

    def __init__(self, partition: Partition, record: Record) -> None:
        self._partition = partition
        self._record = record

    @property
    def topic(self) -> str:
        return self._partition.topic

    @property
    def partition(self) -> int:
        return self._partition.number

    @property
    def offset(self) -> int:
        return self._record.offset()

    @property
    def timestamp(self) -> datetime.datetime | None:
        return _moment(self._record)

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return list(self._record.headers() or ())


def _no_lists(values: list[Any], bad: Mapping[int, Unreadable]) -> dict[int, Unreadable]:
    return {
        n: Unreadable(f"its value is no list but {type(items).__name__}, although many is set")
        for n, items in enumerate(values)
        if not isinstance(items, list | tuple | None) and n not in bad
    }


def _one_by_one(
    positions: list[int], made: Mapping[str, list[Any]]
) -> tuple[list[int], dict[str, list[Any]]]:
    """A row for each item of each value."""
    lists = [items or () for items in made["value"]]
    counts = [len(items) for items in lists]

    def spread(values: list[Any]) -> list[Any]:
        return list(chain.from_iterable(map(repeat, values, counts)))

    rows = {name: spread(values) for name, values in made.items()}
    rows["value"] = list(chain.from_iterable(lists))
    rows["index"] = [n for count in counts for n in range(count)]
    return spread(positions), rows


def wanted_ranges(split: Split) -> list[Range]:
    """Return a split's wanted offsets, as ranges to read in turn.

    >>> wanted_ranges(Split(count=3, data={"start": 100}, only=(1, 3, 90_000)))
    [(101, 104), (90100, 90101)]
    """
    start: int = split.data["start"]
    if split.only is None:
        return [(start, start + split.count)]
    ranges: list[Range] = []
    for position in sorted(split.only):
        offset = start + position
        if ranges and offset - ranges[-1][1] <= _SEEK_OVER:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def wanted(records: Sequence[Record], offsets: Collection[int] | None) -> Sequence[Record]:
    """Return the wanted records; all if ``offsets`` is None."""
    return records if offsets is None else [r for r in records if r.offset() in offsets]


def kept_records(split: Split) -> "tuple[list[KeptRecord], Split | None]":
    """Return the records inside of a split, and the split of all other records, if any."""
    if split.kept is None:
        return [], split
    pairs = list(zip(split.only or (), split.kept, strict=True))
    start: int = split.data["start"]
    kept = [KeptRecord(start + place, data) for place, data in pairs if data is not None]
    others = tuple(place for place, data in pairs if data is None)
    rest = replace(split, count=len(others), only=others, kept=None)
    return kept, rest if others else None


def to_kept(record: Record) -> dict[str, Any]:
    """A record as JSON's types, for :class:`KeptRecord`."""
    kind, millis = record.timestamp()
    return {
        "time": millis if kind else None,
        "key": _to_text(record.key()),
        "value": _to_text(record.value()),
        "headers": [[name, _to_text(value)] for name, value in _headers_or_none(record)],
    }


def kept_size(data: Mapping[str, Any]) -> int:
    """Return the approximate size of a kept record, in bytes."""
    texts = [data["key"], data["value"], *chain.from_iterable(data["headers"])]
    return _FRAME + sum(len(text or "") for text in texts)


@final
class KeptRecord:
    """A kept record, in the place of a record from the log."""

    def __init__(self, offset: int, data: Mapping[str, Any]) -> None:
        self._offset = offset
        self._data = data

    def offset(self) -> int:
        """The offset in the partition."""
        return self._offset

    def key(self) -> bytes | None:
        """The key."""
        return _to_bytes(self._data["key"])

    def value(self) -> bytes | None:
        """The value; None for a tombstone."""
        return _to_bytes(self._data["value"])

    def timestamp(self) -> tuple[int, int]:
        """The timestamp's kind (0: no timestamp), and milliseconds since 1970."""
        millis = self._data["time"]
        return (0, -1) if millis is None else (1, millis)

    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers, in order."""
        return [(name, _to_bytes(value)) for name, value in self._data["headers"]]


def _to_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _to_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def origin_of(record: Record) -> dict[str, Any]:
    """Return the parts of a record for a dead letter, with key and value as bytes.

    A timestamp beyond Python's years stays the bare number of the record.
    """
    kind, millis = record.timestamp()
    try:
        moment: datetime.datetime | int | None = _moment(record)
    except ValueError:
        moment = millis
    return {
        "offset": record.offset(),
        "timestamp": moment,
        "millis": millis if kind else None,
        "key": record.key(),
        "value": record.value(),
        "headers": [[name, value] for name, value in _headers_or_none(record)],
    }


def _moment(record: Record) -> datetime.datetime | None:
    kind, millis = record.timestamp()
    if not kind:
        return None
    try:
        return _EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        raise ValueError(
            f"{millis} is no time between the years 1 and 9999; Kafka counts milliseconds since "
            f"1970, not microseconds"
        ) from None


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _headers(record: Record) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in record.headers() or ()]


def _headers_or_none(record: Record) -> Sequence[tuple[str, bytes | None]]:
    """Return the headers; none if the client cannot decode a name."""
    try:
        return record.headers() or ()
    except ValueError:  # among them UnicodeDecodeError
        return ()
