"""A driver's view of a cluster."""

from collections.abc import Collection, Mapping, Sequence
from typing import final

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.client.cuts import Epochs, find_cuts
from sparkstorm.kafka.client.topics import describe
from sparkstorm.kafka.client.troubles import UNKNOWN_TOPIC, make
from sparkstorm.kafka.cluster import Cluster, Partition, Topic
from sparkstorm.kafka.offsets.stores import Committed, TextTooLongError

__all__ = ["KafkaDesk"]

_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)  # noqa: SLF001


@final
class KafkaDesk:
    """The driver's questions to a cluster, and its commits. Every call may take ``timeout_secs``.

    Args:
        cluster: the Kafka cluster.
        group: the consumer group whose offsets are read and committed.
    """

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._secs = cluster.timeout_secs
        self._group = group
        self._epochs = Epochs()
        self._admin, self._troubles = make(AdminClient, cluster)
        self._consumer, _ = make(
            Consumer, cluster, group_id=group, enable_auto_commit=False, auto_offset_reset="error"
        )
        self._refusal: KafkaError | None = None
        """The coordinator's reason for a refusal, from the consumer."""

    def topic_names(self) -> list[str]:
        """The names of all visible topics.

        Raises:
            SpoutConnectionError: no answer.
        """
        try:
            found = self._admin.list_topics(timeout=self._secs).topics
        except KafkaException as error:
            raise self._troubles.error("list the topics", error) from error
        return sorted(found)

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """The existing topics among these.

        Raises:
            SpoutConnectionError: no answer.
        """
        if not names:
            return {}
        return describe(self._admin, names, self._secs, self._troubles)

    def starts(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The first offsets of the logs."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Where the readable parts end: at the last stable offsets."""
        return self._offsets(partitions, OffsetSpec.latest(), self._epochs)

    def log_ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Where the logs end, records of open transactions included."""
        return self._offsets(partitions, OffsetSpec.latest(), level=IsolationLevel.READ_UNCOMMITTED)

    def cuts(self) -> dict[Partition, int]:
        """Where logs were cut by a change of leader.

        A cut log may have grown again beyond the known end: only the leaders' epochs tell. Each cut
        is told once.

        Raises:
            SpoutConnectionError: no answer.
        """
        suspects = self._epochs.suspects()
        found = find_cuts(self._cluster, suspects) if suspects else {}
        self._epochs.clear(suspects)
        return found

    def at(self, partitions: Collection[Partition], millis: int) -> dict[Partition, int]:
        """The first offsets of a time or later; the ends, if there are no such offsets."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(millis))
        late = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.ends(late)}

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        """Return the committed offset and text of each partition, if there is a commit.

        Raises:
            SpoutConnectionError: no answer, or no permission.
        """
        if not partitions:
            return {}
        wanted = [TopicPartition(p.topic, p.number) for p in partitions]
        try:
            found = self._consumer.committed(wanted, timeout=self._secs)
        except KafkaException as error:
            raise self._group_error("read the group's offsets", error) from error
        self._refusal = None
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
            TextTooLongError: the brokers allow only shorter texts.
            SpoutConnectionError: no answer, or the group has members of its own.
        """
        wanted = [
            TopicPartition(p.topic, p.number, offset, metadata=text)
            for p, (offset, text) in offsets.items()
        ]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in UNKNOWN_TOPIC:  # of all of them: they are gone
                return
            if error.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                raise TextTooLongError(error.args[0].str()) from error
            raise self._group_error("commit offsets", error) from error
        self._refusal = None
        failed = [one for one in done or () if one.error is not None]
        for one in failed:
            if one.error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                raise TextTooLongError(one.error.str())
        for one in failed:
            if one.error.code() not in UNKNOWN_TOPIC:
                raise self._troubles.error(f"commit offsets of {one.topic}", one.error)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _group_error(self, what: str, error: KafkaException) -> SpoutConnectionError:
        """Return the error of a request for the group, with the true cause of a time-out.

        After a refusal the consumer goes on waiting. Its queue gets the reason, once, and holds no
        records, since the consumer has no partitions.
        """
        # never ask an AdminClient about a group: a request that is pending while the coordinator
        # comes back aborts the whole process (librdkafka issue 4605)
        while (event := self._consumer.poll(0)) is not None:
            if event.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                self._refusal = event.error()
        if error.args[0].code() in _NO_ANSWER and self._refusal is not None:
            return self._troubles.error(f"{what} of {self._group!r}", self._refusal)
        return self._troubles.error(what, error)

    def _offsets(
        self,
        partitions: Collection[Partition],
        spec: OffsetSpec,
        epochs: Epochs | None = None,
        *,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[Partition, int]:
        """Ask for offsets, without partitions that are gone or have no leader now."""
        if not partitions:
            return {}
        wanted = {TopicPartition(p.topic, p.number): spec for p in partitions}
        try:
            asked = self._admin.list_offsets(
                wanted, isolation_level=level, request_timeout=self._secs
            )
        except KafkaException as error:
            raise self._troubles.error("ask for offsets", error) from error
        found: dict[Partition, int] = {}
        for one, answer in asked.items():
            try:
                told = answer.result(self._secs + 1)
                if told.offset != OFFSET_INVALID:
                    partition = Partition(one.topic, one.partition)
                    found[partition] = told.offset
                    if epochs is not None:
                        epochs.note(partition, told.offset, told.leader_epoch)
            except KafkaException as error:
                if error.args[0].code() not in UNKNOWN_TOPIC:
                    raise self._troubles.error("ask for offsets", error) from error
            except TimeoutError as error:
                raise self._troubles.error("ask for offsets") from error
        return found
