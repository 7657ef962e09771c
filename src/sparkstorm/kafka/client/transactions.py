"""A producer of numbered transactions. Each number is committed once."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from sparkstorm.errors import (
    CommitError,
    SparkstormError,
    SpoutConnectionError,
    SupersededError,
)
from sparkstorm.kafka.client.producing import make_producer, produce
from sparkstorm.kafka.client.topics import await_topics
from sparkstorm.kafka.client.troubles import Troubles, make
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Outgoing

__all__ = ["TransactionalSender", "check_topics"]

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)  # noqa: SLF001
_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
_ABORT_SECS = 2.0
_WAIT_SECS = 0.1
_TOPIC_SECS = 5.0
"""A new topic may take so long to reach all brokers."""


def check_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Check that topics exist: a record for a missing topic would wait until the time-out.

    Raises:
        CommitError: a topic is missing, or no broker answers.
    """
    admin, troubles = make(AdminClient, cluster)
    secs = cluster.timeout_secs
    try:
        found = await_topics(admin, names, secs, troubles, patience_secs=_TOPIC_SECS)
    except SpoutConnectionError as error:
        raise CommitError(str(error)) from error
    missing = [name for name in names if name not in found]
    if missing:
        raise CommitError(f"there is no topic {missing[0]!r}: create it, or mend its name")


@final
class TransactionalSender:
    """Produces numbered transactions; a repeated call with a number produces nothing.

    The number travels in the transaction itself, as offsets committed for a consumer group of the
    sender's name: ``number + 1`` for partition 0 of each topic.

    A new sender takes the name over. The brokers *fence* the sender before: it can commit nothing
    from then on. They abort its open transaction, and decide a transaction in doubt.

    Args:
        cluster: the Kafka cluster.
        name: the transactional id, and the group.
        topics: the topics that the sender may write to.
        secs: how long a transaction may take; the brokers abort a longer transaction.

    Raises:
        CommitError: no answer in time, or no permission.
        SupersededError: another sender has taken the name over meanwhile.
    """

    def __init__(self, cluster: Cluster, name: str, topics: Sequence[str], secs: float) -> None:
        self._cluster = cluster
        self._name = name
        self._topics = topics
        self._secs = secs
        self._began = time.monotonic()
        check_topics(cluster, topics)
        self._producer, self._troubles = make_producer(
            cluster, transactional_id=name, transaction_timeout_ms=int(secs * 1000)
        )
        with self._told("take up the transactions", self._troubles):
            self._producer.init_transactions(secs)
        self.last = -1
        """The number of the last transaction; -1 before the first."""
        self._take_up()

    def commit(self, number: int, records: Collection[Outgoing]) -> None:
        """Produce a transaction, unless its number or a later number is committed already.

        1. send the records, and wait for the brokers' answers
        2. store the number
        3. commit: records and number become visible together

        After an error the transaction may have happened or not. Make a new sender: it finds out.

        Raises:
            CommitError: says why the transaction cannot be produced.
            SupersededError: another sender has taken the name over.
        """
        if number <= self.last:
            return
        self._began = time.monotonic()
        try:
            with self._told(f"commit transaction {number}", self._troubles):
                self._producer.begin_transaction()
                self._send(records)
                marks = [TopicPartition(name, 0, number + 1) for name in self._topics]
                self._producer.send_offsets_to_transaction(marks, self._group, self._left())
                self._producer.commit_transaction(self._left())
        except SparkstormError:
            self._abort()
            raise
        self.last = number

    def __repr__(self) -> str:
        return f"TransactionalSender({self._name!r}, last={self.last})"

    def _take_up(self) -> None:
        """Find out the number of the last transaction of any sender of this name."""
        # an AdminClient would do without topics, but crashed when the coordinator was just made
        consumer, troubles = make(
            Consumer, self._cluster, group_id=self._name, isolation_level="read_committed"
        )
        with self._told("read the number of the last transaction", troubles):
            self._group = consumer.consumer_group_metadata()
            self.last = max(0, *(one.offset for one in self._committed(consumer))) - 1
        consumer.close()

    def _committed(self, consumer: Consumer) -> list[TopicPartition]:
        """Return the group's committed offset, as soon as its coordinator is ready."""
        wanted = [TopicPartition(name, 0) for name in self._topics]
        while True:
            try:
                found: list[TopicPartition] = consumer.committed(wanted, timeout=self._left())
                for one in found:
                    if one.error is not None:
                        raise KafkaException(one.error)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_YET:
                    raise
                time.sleep(_WAIT_SECS)
            else:
                return found

    def _send(self, records: Collection[Outgoing]) -> None:
        refused: list[tuple[str, KafkaError]] = []

        def report(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                refused.append((message.topic(), error))

        for record in records:
            self._produce(record, report)
        left = self._producer.flush(self._left())
        if refused:
            topic, error = refused[0]
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            raise CommitError(f"{topic!r} did not take a record: {error.str()}{more}")
        if left:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001

    def _produce(self, record: Outgoing, report: Callable[[KafkaError | None, Any], None]) -> None:
        """Send one record, waiting if the producer's queue is full."""
        while True:
            try:
                produce(self._producer, record, report)
            except BufferError:
                self._producer.poll(min(_WAIT_SECS, self._left()))
            else:
                return

    def _left(self) -> float:
        """The rest of the transaction's time, in seconds."""
        left = self._began + self._secs - time.monotonic()
        if left <= 0:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
        return left

    def _abort(self) -> None:
        """Abort, so that readers do not wait. The next sender of the name would abort, too."""
        with suppress(KafkaException, SystemError):
            self._producer.abort_transaction(_ABORT_SECS)

    @contextmanager
    def _told(self, what: str, troubles: Troubles) -> Iterator[None]:
        """Turn errors of Kafka's client around requests into CommitError and SupersededError."""
        try:
            yield
        except KafkaException as error:
            raise self._error(what, troubles, error) from error
        except SystemError as error:
            # the client raises what is fatal while it calls back for records: Python's complaint
            if not isinstance(error.__cause__, KafkaException):
                raise
            raise self._error(what, troubles, error.__cause__) from error

    def _error(self, what: str, troubles: Troubles, error: KafkaException) -> SparkstormError:
        # the brokers fence, too, whose transaction took too long, after a pause of this process
        in_time = time.monotonic() < self._began + self._secs
        text, _ = troubles.told(what, error)
        if error.args[0].code() in _FENCED and in_time:
            return SupersededError(
                f"{text}. Another run has taken over the transactional id {self._name!r}: let "
                f"only one run use a checkpoint, or a copy of it"
            )
        return CommitError(text)
