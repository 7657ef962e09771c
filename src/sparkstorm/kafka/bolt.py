"""The Kafka bolt: one record per tuple, acked when the brokers have it."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

from sparkstorm.components.bolt import Bolt
from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.wiring import Wiring
from sparkstorm.config import Config
from sparkstorm.formats import Format, Writer, writer_of
from sparkstorm.kafka.client.sender import Sender
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Header, RecordMaker, Selector, TopicSelector
from sparkstorm.tuples import Tuple

__all__ = ["KafkaBolt"]


@final
class KafkaBolt(Bolt):
    """Writes a record for each tuple, many at a time; a tuple is acked by its delivery report.

    A record that the brokers do not take fails its tuple, with their reason; one that is left
    without an answer fails when the time is over. So a record may be written twice (its message is
    tried again), and is never lost.

    Args:
        topic: its name, or a function of the tuple that returns one.
        bootstrap_servers: ``host:port``, several with commas between.
        value: the field that is written, or a function of the tuple.
        key: the same for the key; None for no key.
        headers: a function of the tuple that returns (name, bytes) pairs.
        partition: the field or function of the tuple that gives the partition's number. By
            default the key's hash decides, as with Java's producer (murmur2), so that topics
            join by key; the client property ``partitioner`` chooses another hash.
        timestamp: the field or function that gives the record's time, as a datetime or as
            milliseconds since 1970; by default the time of sending.
        value_format: how the value is written: ``"bytes"``, ``"string"``, ``"json"``, or a
            function that returns bytes.
        key_format: the same for the key.
        timeout_secs: how long the brokers may take for a record.
        idempotent: let the brokers drop what the producer sends twice by itself.
        client: more properties of librdkafka, for security above all. Never logged.
    """

    transient = ("_waiting", "_answers", "_numbers")

    def __init__(
        self,
        topic: TopicSelector,
        *,
        bootstrap_servers: str,
        value: Selector = "value",
        key: Selector | None = None,
        headers: Callable[[Tuple], Sequence[Header]] | None = None,
        partition: Selector | None = None,
        timestamp: Selector | None = None,
        value_format: Format | Writer = "bytes",
        key_format: Format | Writer = "bytes",
        timeout_secs: float = 30.0,
        idempotent: bool = True,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        self._cluster = Cluster(bootstrap_servers=bootstrap_servers, client=client or {})
        self._maker = RecordMaker(
            topic=topic,
            value=value,
            write_value=writer_of(value_format),
            key=key,
            write_key=writer_of(key_format),
            headers=headers,
            partition=partition,
            timestamp=timestamp,
        )
        # a function's topics are not known before the tuples are
        self.writes_to = () if callable(topic) else (self._cluster.place(topic),)
        self._timeout_secs = timeout_secs
        self._idempotent = idempotent

    def faults(self, wiring: Wiring, tasks: int) -> Iterator[str]:
        """Find named fields that a stream lacks."""
        yield from self._maker.faults(wiring)

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Share one producer among the tasks in this process."""
        properties = {
            "enable_idempotence": self._idempotent,
            "delivery_timeout_ms": int(self._timeout_secs * 1000),
        }
        self._sender = context.shared(
            f"kafka producer {self._cluster.identity} {sorted(properties.items())}",
            lambda: Sender(self._cluster, **properties),
        )
        self._numbers = itertools.count()
        self._waiting: dict[int, Tuple] = {}
        self._answers: list[tuple[int, str | None]] = []

    def execute(self, tup: Tuple) -> None:
        """Send the record; what became of it is seen at the end of the batch."""
        record, number = self._maker.record(tup), next(self._numbers)
        self._waiting[number] = tup
        self._sender.send(record, lambda error: self._answers.append((number, error)))

    def finish_batch(self) -> None:
        """Wait for the delivery reports and ack, or fail, each tuple."""
        # librdkafka itself gives up a record after the time; this is for what it never tells of
        self._sender.flush(self._timeout_secs + 1.0)
        answers, self._answers = self._answers, []
        for number, error in answers:
            tup = self._waiting.pop(number, None)  # what comes after its batch is too late
            if tup is not None and error is None:
                self.collector.ack(tup)
            elif tup is not None:
                self.collector.fail(tup, f"Kafka did not take it: {error}")
        for tup in self._waiting.values():
            self.collector.fail(tup, f"no answer from Kafka: {self._sender.trouble}")
        self._waiting = {}

    def __repr__(self) -> str:
        return f"KafkaBolt({self._maker.topic!r}, {self._cluster!r})"
