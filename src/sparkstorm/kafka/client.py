"""The one module that knows confluent-kafka: a driver's view of a cluster, a reader, a producer.

librdkafka retries by itself and mostly stays silent about why; what it tells its error callback is
kept as :attr:`Troubles.last` and put into our errors. (A refused password, say, is told nowhere
else.)
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, final

from sparkstorm.errors import ConfigError, EnvironmentFault, SpoutConnectionError
from sparkstorm.kafka.cluster import Cluster, Partition, Topic
from sparkstorm.kafka.records import Record

try:
    from confluent_kafka import (
        Consumer,
        IsolationLevel,
        KafkaError,
        KafkaException,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient, OffsetSpec
except ImportError as error:
    raise EnvironmentFault(
        "Kafka needs the package confluent-kafka: pip install 'sparkstorm[kafka]'"
    ) from error

__all__ = [
    "Committed",
    "KafkaDesk",
    "OutOfRangeError",
    "RangeReader",
    "RefusedError",
    "Sender",
    "Troubles",
    "shared_reader",
]

Committed: TypeAlias = tuple[int, str]
"""A committed offset and the text stored with it."""

_AT_ONCE = 10_000
"""Records taken from librdkafka's queue in one go."""

_LOOK_SECS = 0.1
_REFUSALS = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's own errors begin with _
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_UNKNOWN_TOPIC = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)


class OutOfRangeError(Exception):
    """The log does not have this offset; it goes from ``low`` to ``high``."""

    def __init__(self, partition: Partition, offset: int, low: int, high: int) -> None:
        super().__init__(f"{partition} has no offset {offset}: it goes from {low} to {high}")
        self.low = low
        self.high = high


class RefusedError(SpoutConnectionError):
    """The cluster does not let us in, or not at this: waiting is of no use."""


@final
class Troubles:
    """The last thing that a client's error callback heard, and how to put it into words."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._refused = False
        self.last = ""
        self.serve: Callable[[], object] = lambda: None
        """Lets the client call its callbacks."""

    def note(self, error: KafkaError) -> None:
        """The callback; ``all brokers down`` tells less than what came before it."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.last:  # noqa: SLF001
            self.last = error.str()
            self._refused = error.code() in _REFUSALS

    def error(self, what: str, cause: object = "") -> SpoutConnectionError:
        """Return the error of a request that failed."""
        self.serve()
        said = cause.args[0] if isinstance(cause, KafkaException) else cause
        text = said.str() if isinstance(said, KafkaError) else str(said)
        reason = "; ".join(dict.fromkeys(filter(None, (text, self.last)))) or "no answer"
        refused = self._refused or (isinstance(said, KafkaError) and said.code() in _REFUSALS)
        self.last, self._refused = "", False
        kind = RefusedError if refused else SpoutConnectionError
        return kind(f"cannot {what} at {self._cluster.bootstrap_servers}: {reason}")


def _make(
    kind: Callable[[dict[str, Any]], Any], cluster: Cluster, **more: Any
) -> tuple[Any, Troubles]:
    """Make a client; return it with what will go wrong."""
    troubles = Troubles(cluster)
    properties = {name.replace("_", "."): value for name, value in more.items()}
    try:
        client = kind({**cluster.properties(), **properties, "error_cb": troubles.note})
    except (KafkaException, ValueError, TypeError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else error
        raise ConfigError(f"the Kafka client refuses its properties: {why}") from error
    if kind is not Consumer:  # whose poll would take records
        troubles.serve = lambda: client.poll(0)
    return client, troubles


@final
class KafkaDesk:
    """What the driver asks and tells a cluster. Every call may take ``timeout_secs``.

    Args:
        cluster: where.
        group: the consumer group whose offsets are read and committed.
    """

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._secs = cluster.timeout_secs
        self._admin, self._troubles = _make(AdminClient, cluster)
        self._consumer, _ = _make(
            Consumer, cluster, group_id=group, enable_auto_commit=False, auto_offset_reset="error"
        )

    def topic_names(self) -> list[str]:
        """The names of all topics that we may see.

        Raises:
            SpoutConnectionError: no answer.
        """
        try:
            found = self._admin.list_topics(timeout=self._secs).topics
        except KafkaException as error:
            raise self._troubles.error("list the topics", error) from error
        return sorted(found)

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Those of these topics that exist.

        Raises:
            SpoutConnectionError: no answer.
        """
        if not names:
            return {}
        return _describe(self._admin, names, self._secs, self._troubles)

    def starts(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The first offsets that the logs still have."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Where the readable parts end: at the last stable offsets."""
        return self._offsets(partitions, OffsetSpec.latest())

    def at(self, partitions: Sequence[Partition], millis: int) -> dict[Partition, int]:
        """The first offsets of that time or later; where there are none, the ends."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(millis))
        late = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.ends(late)}

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        """What the group has committed, where it has.

        Raises:
            SpoutConnectionError: no answer, or we may not.
        """
        if not partitions:
            return {}
        wanted = [TopicPartition(p.topic, p.number) for p in partitions]
        try:
            found = self._consumer.committed(wanted, timeout=self._secs)
        except KafkaException as error:
            raise self._troubles.error("read the group's offsets", error) from error
        for one in found:
            if one.error is not None:
                raise self._troubles.error("read the group's offsets", one.error)
        return {
            # other clients leave the NUL that confluent-kafka ends the text with
            Partition(one.topic, one.partition): (one.offset, (one.metadata or "").rstrip("\0"))
            for one in found
            if one.offset >= 0
        }

    def commit(self, offsets: Mapping[Partition, Committed]) -> None:
        """Commit offsets for the group, each with its text.

        Raises:
            SpoutConnectionError: no answer, or the group has members of its own.
        """
        wanted = [
            TopicPartition(p.topic, p.number, offset, metadata=text)
            for p, (offset, text) in offsets.items()
        ]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise self._troubles.error("commit offsets", error) from error
        for one in done or ():
            if one.error is not None and one.error.code() not in _UNKNOWN_TOPIC:
                raise self._troubles.error(f"commit offsets of {one.topic}", one.error)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _offsets(self, partitions: Sequence[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        """Ask for offsets; a partition that is not there any more is left out."""
        if not partitions:
            return {}
        wanted = {TopicPartition(p.topic, p.number): spec for p in partitions}
        try:
            asked = self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._secs
            )
        except KafkaException as error:
            raise self._troubles.error("ask for offsets", error) from error
        found: dict[Partition, int] = {}
        for one, answer in asked.items():
            try:
                found[Partition(one.topic, one.partition)] = answer.result(self._secs + 1).offset
            except KafkaException as error:
                if error.args[0].code() not in _UNKNOWN_TOPIC:
                    raise self._troubles.error("ask for offsets", error) from error
            except TimeoutError as error:
                raise self._troubles.error("ask for offsets") from error
        return found


@final
class RangeReader:
    """Reads ranges of offsets, on an executor: one consumer, kept for the life of the process."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer, self._troubles = _make(
            Consumer,
            cluster,
            group_id="sparkstorm-reader",  # never joined and never committed to
            enable_auto_commit=False,
            auto_offset_reset="error",
            enable_partition_eof=True,
            isolation_level="read_committed",
            fetch_wait_max_ms=10,
            fetch_queue_backoff_ms=5,
        )
        self._admin: Any = None
        self._known: dict[str, tuple[float, str | None]] = {}
        self.lock = threading.Lock()

    def topic_id(self, name: str) -> str | None:
        """The id of the topic of that name, as of the last second; None if there is none.

        A broker that has just started may know of no topic, so that is asked again for a while.
        """
        at, known = self._known.get(name, (-1.0, None))
        if time.monotonic() - at < 1.0:
            return known
        if self._admin is None:
            self._admin, self._admin_troubles = _make(AdminClient, self._cluster)
        secs, found, deadline = self._cluster.timeout_secs, {}, self._deadline()
        while name not in found and time.monotonic() < deadline:
            found = _describe(self._admin, [name], secs, self._admin_troubles)
            if name not in found:
                time.sleep(_LOOK_SECS)
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
            records = [one for one in taken if one.error() is None and one.offset() >= position]
            ends = [self._end_of(one, partition, position) for one in taken if one.error()]
            if records:
                position = records[-1].offset() + 1
                wanted = [one for one in records if one.offset() < stop]
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


@final
class Sender:
    """A producer that says of each record what became of it; thread-safe.

    Args:
        cluster: where.
        properties: more of librdkafka's properties.
    """

    def __init__(self, cluster: Cluster, **properties: Any) -> None:
        self._cluster = cluster
        self._properties = {"enable_idempotence": True, **properties}
        self._lock = threading.Lock()
        self._producer, self._troubles = _make(Producer, cluster, **self._properties)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        on_done: Callable[[str | None], None],
    ) -> None:
        """Send a record; ``on_done`` hears None or what went wrong, within :meth:`flush`.

        Waits if the producer's queue is full.
        """

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None and error.fatal():
                self._renew()
            on_done(None if error is None else error.str())

        while True:
            producer = self._producer
            try:
                producer.produce(
                    topic, value, key, headers=list(headers) or None, on_delivery=report
                )
            except BufferError:
                producer.poll(_LOOK_SECS)
            except KafkaException as error:
                report(error.args[0], None)
                return
            else:
                producer.poll(0)
                return

    def flush(self, secs: float) -> int:
        """Wait until every record has its answer; return how many still have none."""
        return int(self._producer.flush(secs))

    @property
    def trouble(self) -> str:
        """The last thing that went wrong with the connection."""
        return self._troubles.last or "no answer"

    def _renew(self) -> None:
        """An idempotent producer that lost its sequence refuses everything from then on."""
        with self._lock:
            self._producer, self._troubles = _make(Producer, self._cluster, **self._properties)


def _describe(
    admin: Any, names: Sequence[str], secs: float, troubles: Troubles
) -> dict[str, Topic]:
    try:
        asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=secs)
    except KafkaException as error:
        raise troubles.error("describe topics", error) from error
    found: dict[str, Topic] = {}
    for name, answer in asked.items():
        try:
            described = answer.result(secs + 1)
        except KafkaException as error:
            if error.args[0].code() not in _UNKNOWN_TOPIC:
                raise troubles.error(f"describe the topic {name}", error) from error
        except TimeoutError as error:
            raise troubles.error(f"describe the topic {name}") from error
        else:
            leaders = {
                p.id: p.leader and (p.leader.host, p.leader.port) for p in described.partitions
            }
            found[name] = Topic(name, str(described.topic_id), leaders)
    return found


_READERS: dict[object, RangeReader] = {}


def shared_reader(cluster: Cluster) -> RangeReader:
    """Return this process's reader of a cluster; made at the first call."""
    # a forked process must not use the connections of its parent
    key = (os.getpid(), cluster.identity)
    if key not in _READERS:
        _READERS[key] = RangeReader(cluster)
    return _READERS[key]
