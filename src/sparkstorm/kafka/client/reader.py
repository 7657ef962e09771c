"""Ranges of offsets, read on an executor."""

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.client.topics import await_topics
from sparkstorm.kafka.client.troubles import make
from sparkstorm.kafka.cluster import Cluster, Partition
from sparkstorm.kafka.records import Record

__all__ = ["OutOfRangeError", "RangeReader", "shared_reader"]

_AT_ONCE = 1_000
"""Records taken from librdkafka's queue in one go: so few stay in the processor's caches."""

_AHEAD = 20_000
"""Records that librdkafka fetches ahead; those behind the end of a range are fetched for nothing.

With the default of librdkafka, 100,000, a range of a few thousand records pays for many times more.
"""

_LOOK_SECS = 0.1


class OutOfRangeError(Exception):
    """The log does not have this offset; it goes from ``low`` to ``high``."""

    def __init__(self, partition: Partition, offset: int, low: int, high: int) -> None:
        super().__init__(f"{partition} has no offset {offset}: it goes from {low} to {high}")
        self.low = low
        self.high = high


@final
class RangeReader:
    """Reads ranges of offsets, on an executor: one consumer, kept for the life of the process."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer, self._troubles = make(
            Consumer,
            cluster,
            group_id="sparkstorm-reader",  # never joined and never committed to
            enable_auto_commit=False,
            auto_offset_reset="error",
            enable_partition_eof=True,
            isolation_level="read_committed",
            fetch_wait_max_ms=10,
            fetch_queue_backoff_ms=5,
            queued_min_messages=_AHEAD,
        )
        self._admin: Any = None
        self._known: dict[str, tuple[float, str | None]] = {}
        self.lock = threading.Lock()

    def topic_id(self, name: str, expected: str, *, age_secs: float = 1.0) -> str | None:
        """The id of the topic of that name, at most so old; None if there is none.

        A broker that has just started may know of no topic, so that is asked again for a while.
        Another id than the expected one is always asked for: the topic may just have been made.
        """
        at, known = self._known.get(name, (-1.0, None))
        if known == expected and time.monotonic() - at < age_secs:
            return known
        if self._admin is None:
            self._admin, self._admin_troubles = make(AdminClient, self._cluster)
        secs = self._cluster.timeout_secs
        found = await_topics(self._admin, [name], secs, self._admin_troubles, patience_secs=secs)
        self._known[name] = (time.monotonic(), found[name].id if name in found else None)
        return self._known[name][1]

    def read(self, partition: Partition, start: int, stop: int) -> Iterator[list[Record]]:
        """Yield the records of ``[start, stop)``, ascending, in lists.

        Offsets that are in none of them hold no record. Ends as soon as that is known: at a record
        behind the range, or at the end of the partition. Never waits for a record that may not be.

        Raises:
            OutOfRangeError: the log does not have the next offset.
            SpoutConnectionError: nothing came for ``timeout_secs``.
        """
        self._consumer.assign([TopicPartition(partition.topic, partition.number, start)])
        try:
            yield from self._until(partition, start, stop)
        finally:
            with suppress(KafkaException, RuntimeError):
                self._consumer.unassign()

    def _until(self, partition: Partition, position: int, stop: int) -> Iterator[list[Record]]:
        deadline = self._deadline()
        while position < stop:
            first = self._consumer.poll(_LOOK_SECS)
            taken = [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]
            records = [one for one in taken if one.error() is None]
            events = [] if len(records) == len(taken) else [one for one in taken if one.error()]
            ends = [self._end_of(one, partition, position) for one in events]
            if records and records[-1].offset() >= position:
                # offsets ascend, so a search saves a look at each record
                wanted = records[_place(records, position) : _place(records, stop)]
                position = records[-1].offset() + 1
                if wanted:
                    yield wanted
                deadline = self._deadline()
            position = max([position, *ends])
            if position < stop and time.monotonic() > deadline:
                raise self._give_up(partition, position, stop)

    def _deadline(self) -> float:
        return time.monotonic() + self._cluster.timeout_secs

    def _end_of(self, message: Any, partition: Partition, position: int) -> int:
        """Up to where an event says that there is nothing; -1 if it says something else."""
        error = message.error()
        match error.code():
            case KafkaError._PARTITION_EOF:  # noqa: SLF001
                return int(message.offset())
            case KafkaError._AUTO_OFFSET_RESET | KafkaError.OFFSET_OUT_OF_RANGE:  # noqa: SLF001
                low, high = self._watermarks(partition)
                if not low <= position <= high:
                    raise OutOfRangeError(partition, position, low, high)
        self._troubles.note(error)
        return -1

    def _watermarks(self, partition: Partition) -> tuple[int, int]:
        wanted = TopicPartition(partition.topic, partition.number)
        try:
            found = self._consumer.get_watermark_offsets(wanted, timeout=self._cluster.timeout_secs)
        except KafkaException as error:
            raise self._troubles.error(f"ask for the ends of {partition}", error) from error
        if found is None:
            raise self._troubles.error(f"ask for the ends of {partition}")
        return int(found[0]), int(found[1])

    def _give_up(self, partition: Partition, position: int, stop: int) -> Exception:
        """Nothing came for long: a log that was cut short, or a broker that is away."""
        low, high = self._watermarks(partition)
        if high < stop:
            return OutOfRangeError(partition, position, low, high)
        failure: SpoutConnectionError = self._troubles.error(
            f"read {partition} from {position} to {stop}"
        )
        return failure


def _place(records: Sequence[Record], offset: int) -> int:
    """Return how many of the records come before an offset."""
    return bisect_left(records, offset, key=_offset_of)


def _offset_of(record: Record) -> int:
    return record.offset()


_READERS: dict[object, RangeReader] = {}


def shared_reader(cluster: Cluster) -> RangeReader:
    """Return this process's reader of a cluster; made at the first call."""
    # a forked process must not use the connections of its parent
    key = (os.getpid(), cluster.identity)
    if key not in _READERS:
        _READERS[key] = RangeReader(cluster)
    return _READERS[key]
