"""A broker for the tests, and a hand to play with it: topics, records, what a group committed."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from sparkstorm.testing import PATIENCE_SECS, wait_until
from sparkstorm.testing.servers import KafkaServer

collect_ignore = ["orders.py"]


class Hand:
    """Does to a broker what users and other programs do."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.address = server.address
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    def topic(
        self, partitions: int = 1, name: str = "", *, replicas: int = 1, **config: Any
    ) -> str:
        """Make a topic."""
        name = name or f"t-{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        wanted = NewTopic(name, partitions, replicas, config=settings)
        self.admin.create_topics([wanted])[name].result()
        wait_until(lambda: name in self.admin.list_topics(timeout=30).topics)
        return name

    def topic_on(self, brokers: list[int]) -> str:
        """Make a topic of one partition whose replicas are on these brokers."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        wanted = NewTopic(name, 1, replica_assignment=[brokers])
        self.admin.create_topics([wanted])[name].result()
        wait_until(lambda: self.in_sync(name) == brokers)
        return name

    def in_sync(self, name: str) -> list[int]:
        """The brokers that have all of a topic's first partition."""
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        return [*admin.list_topics(name, timeout=5).topics[name].partitions[0].isrs]

    def topic_id(self, name: str) -> str:
        """The id of a topic: another one of the name has another id."""
        asked = self.admin.describe_topics(ck.TopicCollection([name]))
        return str(asked[name].result().topic_id)

    def configure(self, name: str, **config: Any) -> None:
        """Change the settings of a topic."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                str(value),
                incremental_operation=AlterConfigOpType.SET,
            )
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result()

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.admin.delete_topics([name])[name].result()
        wait_until(lambda: name not in self.admin.list_topics(timeout=30).topics)

    def brokers(self) -> set[int]:
        """The brokers that are there."""
        return set(self.admin.list_topics(timeout=30).brokers)

    def leaders(self, name: str) -> dict[int, int]:
        """Which broker leads each partition of a topic."""
        return {n: found.leader for n, found in self._described(name).partitions.items()}

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have so many partitions."""
        self.admin.create_partitions([NewPartitions(name, total)])[name].result()
        wait_until(lambda: len(self._described(name).partitions) == total)

    def put(
        self,
        topic: str,
        values: Iterable[Any],
        partition: int = 0,
        *,
        compressed: bool = False,
        **more: Any,
    ) -> None:
        """Produce values, as text; compressed ones in batches as large as can be."""
        settings = {"compression.type": "gzip" if compressed else "none", "linger.ms": 200}
        producer = ck.Producer({"bootstrap.servers": self.address, "log_level": 2, **settings})
        for value in values:
            data = value if value is None or isinstance(value, bytes) else str(value).encode()
            while True:
                try:
                    producer.produce(topic, data, partition=partition, **more)
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        assert producer.flush(30) == 0

    def put_aborted(self, topic: str, values: Sequence[Any], partition: int = 0) -> None:
        """Produce values in a transaction that is aborted: offsets that nobody ever reads."""
        self._transact(topic, values, partition, commit=False)

    def put_committed(self, topic: str, values: Sequence[Any], partition: int = 0) -> None:
        """Produce values in a transaction; a control record follows them."""
        self._transact(topic, values, partition, commit=True)

    @contextmanager
    def open_transaction(
        self, topic: str, values: Sequence[Any], name: str = ""
    ) -> Iterator["Transaction"]:
        """Produce values in a transaction that the test decides."""
        yield Transaction(self.address, topic, values, name=name)

    def read_offsets(self, topic: str) -> list[int]:
        """The offsets that hold a record."""
        return [message.offset() for message in self.read_to_end(topic)]

    def read_to_end(self, topic: str) -> list[ck.Message]:
        """All records of a topic's first partition that a reader of transactions sees."""
        consumer = ck.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "x",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        found: list[ck.Message] = []
        while True:
            message = consumer.poll(PATIENCE_SECS)
            assert message is not None, "the broker gives neither a record nor the end"
            if message.error() is not None:
                break
            found.append(message)
        consumer.close()
        return found

    def end(self, topic: str, partition: int = 0) -> int:
        """The offset of the next record."""
        place = ck.TopicPartition(topic, partition)
        return int(self._consumer("x").get_watermark_offsets(place, 30)[1])

    def start(self, topic: str, partition: int = 0) -> int:
        """The first offset that is still there."""
        place = ck.TopicPartition(topic, partition)
        return int(self._consumer("x").get_watermark_offsets(place, 30)[0])

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete records, as retention would."""
        wanted = ck.TopicPartition(topic, partition, offset)
        next(iter(self.admin.delete_records([wanted]).values())).result()

    def committed(self, group: str, topic: str, partition: int = 0) -> tuple[int, str]:
        """The offset and the text that a group has committed."""
        [found] = self._consumer(group).committed([ck.TopicPartition(topic, partition)], timeout=30)
        return found.offset, found.metadata or ""

    def commit(self, group: str, topic: str, offset: int, text: str = "") -> None:
        """Commit an offset for a group, as another program would."""
        wanted = [ck.TopicPartition(topic, 0, offset, metadata=text)]
        self._consumer(group).commit(offsets=wanted, asynchronous=False)

    def read_all(self, topic: str, count: int) -> list[ck.Message]:
        """Read so many records of a topic's first partition from its beginning."""
        return self._read(topic, [0], count)

    def read_partitions(self, topic: str, count: int) -> list[ck.Message]:
        """Read so many records of all partitions of a topic."""
        return self._read(topic, self._described(topic).partitions, count)

    def _read(self, topic: str, numbers: Iterable[int], count: int) -> list[ck.Message]:
        consumer = self._consumer(uuid.uuid4().hex)
        consumer.assign([ck.TopicPartition(topic, number, 0) for number in numbers])
        found: list[ck.Message] = []
        deadline = time.monotonic() + PATIENCE_SECS
        while len(found) < count and time.monotonic() < deadline:
            found += [m for m in consumer.consume(count, 0.1) if m.error() is None]
        consumer.close()
        return found

    def _described(self, name: str) -> Any:
        return self.admin.list_topics(name, timeout=30).topics[name]

    def _consumer(self, group: str) -> ck.Consumer:
        return ck.Consumer(
            {"bootstrap.servers": self.address, "group.id": group, "enable.auto.commit": False}
        )

    def _transact(self, topic: str, values: Sequence[Any], partition: int, *, commit: bool) -> None:
        transaction = Transaction(self.address, topic, values, partition)
        (transaction.commit if commit else transaction.abort)()


class Transaction:
    """Values that were produced in a transaction."""

    def __init__(
        self,
        address: str,
        topic: str,
        values: Sequence[Any],
        partition: int = 0,
        name: str = "",
    ) -> None:
        name = name or uuid.uuid4().hex
        self._producer = ck.Producer(
            {"bootstrap.servers": address, "transactional.id": name, "log_level": 2}
        )
        self._producer.init_transactions(30)
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(topic, str(value).encode(), partition=partition)
        self._producer.flush(30)

    def commit(self) -> None:
        """They are to be read."""
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        """They are not."""
        self._producer.abort_transaction(30)


@pytest.fixture(scope="session")
def kafka(started: Callable[[KafkaServer], KafkaServer]) -> Iterator[Hand]:
    """A broker that stays up; each test makes topics of its own."""
    # some tests write records of years ago, which the broker would delete half a minute later
    settings = {"log.cleaner.backoff.ms": "200", "log.retention.ms": "-1"}
    with started(KafkaServer(settings)) as server:
        yield Hand(server)


@pytest.fixture
def kafka_pair(started: Callable[[KafkaServer], KafkaServer]) -> Iterator[tuple[Hand, KafkaServer]]:
    """A cluster of two brokers, the second of which a test may kill."""
    both = {"offsets.topic.replication.factor": "2"}
    first = KafkaServer(both)
    second = KafkaServer(both, joins=first)
    with started(first), second:
        hand = Hand(first)
        wait_until(lambda: second.node in hand.brokers())
        yield hand, second


@pytest.fixture
def mortal_kafka(started: Callable[[KafkaServer], KafkaServer]) -> Iterator[Hand]:
    """A broker of one test alone, which may kill it."""
    with started(KafkaServer()) as server:
        yield Hand(server)
