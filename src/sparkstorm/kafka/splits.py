"""Reads the splits of a topic: on an executor as messages, in the driver as bare records."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, final

from sparkstorm.components.spout import EXPIRED, Messages, Split
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.client.reader import OutOfRangeError, RangeReader, shared_reader
from sparkstorm.kafka.cluster import Cluster, Partition
from sparkstorm.kafka.records import (
    Record,
    Shape,
    kept_records,
    origin_of,
    wanted,
    wanted_ranges,
)

__all__ = ["SplitReader", "partition_of"]


@final
class SplitReader:
    """Reads ranges of offsets, or single ones of a range. Every process shares one consumer.

    Args:
        cluster: where.
        shape: how a record becomes a message.
    """

    def __init__(self, cluster: Cluster, shape: Shape) -> None:
        self._cluster = cluster
        self._shape = shape

    def messages(self, split: Split) -> Iterator[Messages]:
        """Yield the messages of a split; offsets that the log has lost are unfit."""
        partition, start = partition_of(split), split.data["start"]
        kept, rest = kept_records(split)
        if kept:
            yield self._shape.messages(partition, start, kept)
        if rest is None:
            return
        reader = shared_reader(self._cluster)
        offsets = None if rest.only is None else {start + position for position in rest.only}
        with reader.lock:
            for records, gone in _records(reader, partition, rest):
                messages = self._shape.messages(partition, start, wanted(records, offsets))
                unfit = {
                    offset - start: EXPIRED
                    for offset in gone
                    if offsets is None or offset in offsets
                }
                yield Messages(
                    positions=messages.positions,
                    columns=messages.columns,
                    unfit={**messages.unfit, **unfit},
                )

    def origins(self, split: Split) -> list[Mapping[str, Any]]:
        """Return the records as they are: offset, timestamp, key, value and headers."""
        kept, rest = kept_records(split)
        there = kept if rest is None else chain(kept, self.records(rest))
        found: dict[int, Mapping[str, Any]] = {r.offset(): origin_of(r) for r in there}
        offsets = [split.data["start"] + position for position in split.only or ()]
        return [found.get(offset, {"offset": offset}) for offset in offsets]

    def records(self, split: Split) -> list[Record]:
        """Return the records of single offsets; those that are gone are left out."""
        reader = shared_reader(self._cluster)
        offsets = {split.data["start"] + position for position in split.only or ()}
        with reader.lock:
            # only when all are read it is known that none is of another topic of the name
            lists = [records for records, _ in _records(reader, partition_of(split), split)]
        return [record for records in lists for record in wanted(records, offsets)]


def _records(
    reader: RangeReader, partition: Partition, split: Split
) -> Iterator[tuple[Sequence[Any], range]]:
    """Yield what is there of a split, and the offsets that its source no longer has.

    Raises:
        SpoutConnectionError: no answer; or the topic was made anew meanwhile, so that the records
            may be those of the new one.
    """
    whole = range(split.data["start"], wanted_ranges(split)[-1][1])
    topic_id = split.data["topic_id"]
    if reader.topic_id(partition.topic, topic_id) != topic_id:
        yield (), whole
        return
    yield from _there(reader, partition, split)
    # Kafka reads by name; ids never come back, so the same id now was the id all along
    if reader.topic_id(partition.topic, topic_id, age_secs=0.0) != topic_id:
        raise SpoutConnectionError(f"the topic of {partition} was deleted while it was read")
    yield (), range(0)


def _there(
    reader: RangeReader, partition: Partition, split: Split
) -> Iterator[tuple[Sequence[Any], range]]:
    """Yield the records at the offsets of a split, and the offsets that the log does not have."""
    for start, stop in wanted_ranges(split):
        while start < stop:
            try:
                for records in reader.read(partition, start, stop):
                    yield records, range(0)
                    start = records[-1].offset() + 1
                break
            except OutOfRangeError as error:
                low, high = min(stop, error.low), max(start, error.high)
                yield (), range(start, low)
                yield (), range(high, stop)
                start, stop = max(start, low), min(stop, high)


def partition_of(split: Split) -> Partition:
    """Return the partition that a split was planned from."""
    return Partition(split.data["topic"], split.data["partition"])
