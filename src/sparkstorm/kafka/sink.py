"""The Kafka sink: the records of each batch in one Kafka transaction, exactly once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.components.wiring import Wiring
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, EmitError, SupersededError
from sparkstorm.formats import Format, Writer, writer_of
from sparkstorm.kafka.client.transactions import TransactionalSender, check_topics
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import (
    Header,
    Outgoing,
    RecordMaker,
    Selector,
    TopicSelector,
    size_of,
)
from sparkstorm.tuples import Tuple

__all__ = ["KafkaSink"]

_MOST_BYTES = 1_000_000
"""The largest record that librdkafka and brokers take by default."""

_REQUEST_SECS = 10.0
"""How long a request may take, if a whole transaction may take longer."""


@final
class KafkaSink(CommitterBolt):
    """Writes a record for each tuple, those of a batch in one Kafka transaction, exactly once.

    The batch's number is stored in the same transaction, so that a batch which is applied again
    after a crash, or by a driver that is long superseded, writes nothing. Consumers that read with
    ``isolation.level=read_committed`` (librdkafka's default) see all of a batch or none of it, and
    the batches in their order.

    The transactional id, and a consumer group whose offsets are the numbers, are named after the
    checkpoint and the bolt: ``<topology>/<checkpoint's id>/<bolt>``.

    A record that is too large, or for another topic, fails its tuple. Any other that the brokers
    do not take (for a ``partition`` that the topic does not have, say) keeps the transaction from
    happening, and in the end ends the run, with their reason.

    Args:
        topic: its name, or a function of the tuple that returns one.
        topics: the names that such a function may return; they must exist.
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
        timeout_secs: how long a transaction may take, and by default at most 900 for the brokers.
            As long as that readers may wait if the driver dies in the middle of one, unless it is
            started again before.
        client: more properties of librdkafka, for security above all. Never logged.

    ::

        builder.set_bolt(
            "totals", KafkaSink("totals", bootstrap_servers="localhost:9092", key="word")
        ).shuffle_grouping("count")
        ss.submit(topology, config={"processing.guarantee": "exactly-once"}, …)
    """

    def __init__(
        self,
        topic: TopicSelector,
        *,
        topics: Sequence[str] = (),
        bootstrap_servers: str,
        value: Selector = "value",
        key: Selector | None = None,
        headers: Callable[[Tuple], Sequence[Header]] | None = None,
        partition: Selector | None = None,
        timestamp: Selector | None = None,
        value_format: Format | Writer = "bytes",
        key_format: Format | Writer = "bytes",
        timeout_secs: float = 60.0,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        if callable(topic) and not topics:
            raise ConfigError(
                "topic is a function: name the topics that it may return, as topics=[…]; the "
                "numbers of the transactions are kept with them"
            )
        self._cluster = Cluster(
            bootstrap_servers=bootstrap_servers,
            client=client or {},
            timeout_secs=min(_REQUEST_SECS, timeout_secs),
        )
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
        self._topics = tuple(topics) if callable(topic) else (topic,)
        self.writes_to = tuple(map(self._cluster.place, self._topics))
        self._most_bytes = int(self._cluster.client.get("message.max.bytes", _MOST_BYTES))
        self._timeout_secs = timeout_secs
        self._sender: TransactionalSender | None = None

    def faults(self, wiring: Wiring, tasks: int) -> Iterator[str]:
        """Find named fields that a stream lacks."""
        yield from self._maker.faults(wiring)

    def stage(self, tup: Tuple) -> Outgoing:
        """Return the record of a tuple (on an executor)."""
        record = self._maker.record(tup)
        if record[0] not in self._topics:
            raise EmitError(f"the topic {record[0]!r} is not among topics={list(self._topics)}")
        if size_of(record) > self._most_bytes:
            raise EmitError(
                f"its record takes {size_of(record)} bytes, more than the {self._most_bytes} that "
                f"the client property message.max.bytes allows"
            )
        return record

    def connect(self, config: Config) -> None:
        """Make sure that the brokers answer, and that the topics exist."""
        check_topics(self._cluster, self._topics)

    def commit(self, transaction: Transaction, staged: Sequence[Outgoing]) -> None:
        """Produce a batch, unless that is done already."""
        try:
            if self._sender is None:
                self._sender = TransactionalSender(
                    self._cluster, transaction.owner, self._topics, self._timeout_secs
                )
            self._sender.commit(transaction.txid, staged)
        except SupersededError:
            raise  # a new sender would take the name back
        except Exception:
            self._sender = None  # the next one finds out what happened
            raise

    def disconnect(self) -> None:
        """Let go of the producer."""
        self._sender = None

    def __repr__(self) -> str:
        return f"KafkaSink({self._maker.topic!r}, {self._cluster!r})"
