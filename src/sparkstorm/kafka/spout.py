"""The Kafka spout: planned in the driver, read by the executors."""

import re
import secrets
import zlib
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Messages, PartitionedSpout, Positions, Split
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.kafka.assignment import Assignment, Limits, merge_splits
from sparkstorm.kafka.cluster import Cluster, Partition, Target
from sparkstorm.kafka.driver.follower import Follower
from sparkstorm.kafka.driver.keeper import Keeper
from sparkstorm.kafka.driver.sizes import RecordSizes
from sparkstorm.kafka.formats import Format, Reader, reader_of, type_of
from sparkstorm.kafka.offsets.zookeeper import ZooKeeperProgress
from sparkstorm.kafka.records import FIELDS, Shape
from sparkstorm.kafka.splits import SplitReader, partition_of
from sparkstorm.kafka.subscription import OnReset, OutOfRange, Start, Subscription, Topics
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.streams import Outputs
from sparkstorm.verdicts import Failure, Reason

__all__ = ["KafkaSpout"]


@final
class KafkaSpout(PartitionedSpout):
    """One message per record of one or several topics, read at scale by the executors.

    The checkpoint keeps the progress. Kafka has it, too, as the group's committed offsets for lag
    tools; the text stored with an offset names acked records beyond. A failed record is read again
    by its offset, beside new records. A failed record holds back the commit and nothing else.

    Args:
        topics: a topic, several, or a pattern (``re.compile("orders-.*")``). A running spout finds
            new partitions and new matching topics. A pattern leaves out names that begin with two
            underscores (Kafka's internal topics), and must not match topics that the topology
            writes to.
        bootstrap_servers: ``host:port``, several with commas between.
        group: the consumer group of the committed progress, without other members.
        start: where to begin without progress: ``"earliest"``, ``"latest"``, a datetime,
            ``"committed"`` to require progress, or offsets by topic and partition
            (``{"orders": {0: 1500, 1: 1712}}``; other partitions begin at their start).
        until: ``"latest"`` to end at the topics' present ends; by default the spout never ends.
        key: how keys are read: ``"bytes"``, ``"string"``, ``"json"``, or a function of bytes.
        value: how values are read. A record without a value (a tombstone) has None.
        fields: the fields of the tuples: any of ``topic``, ``partition``, ``offset``,
            ``timestamp``, ``key``, ``value``, ``headers``, ``index``.
        many: values are lists, and each item becomes a tuple of one message. If a tuple fails, all
            come again, each with its ``index``, so that a bolt can skip finished items.
        out_of_range: where to go on if the log no longer has the next offset: ``"earliest"``,
            ``"latest"``, a datetime, or ``"fail"``. Never without a warning.
        progress: keep progress in ZooKeeper (:class:`ZooKeeperProgress`), not in the group.
        on_reset: how to start on a checkpoint after somebody has set the group's offsets:
            ``"fail"`` refuses to start, ``"follow"`` goes on at the group's offsets, ``"ignore"``
            goes on with the checkpoint.
        force_from_start: begin at ``start`` even if the group has progress. A checkpoint still
            counts more.
        max_uncommitted: so many offsets beyond the commit point pause a partition.
        rate: the most messages a second from one partition.
        message_bytes: the approximate size of a record, for ``topology.max.pending.bytes``. By
            default the driver reads a few records at the start and every ten seconds, and takes
            the mean.
        keep_bytes: how many bytes of failed records the driver and the checkpoint keep, in case
            the log loses the records. Other failed records are read again.
        commit_secs: how often progress is committed to Kafka.
        renew_secs: how often the offsets of all partitions are committed, so that the brokers do
            not forget quiet partitions (``offsets.retention.minutes``, a week by default).
        refresh_secs: how often to look for new topics and partitions.
        connect_secs: how long to wait at the start for a cluster that does not answer.
        client: more properties of librdkafka, for security above all. Never logged.
        timeout_secs: how long one request may take.
    """

    replayable = True

    def __init__(
        self,
        topics: Topics,
        *,
        bootstrap_servers: str,
        group: str,
        start: Start = "earliest",
        until: str | None = None,
        key: Format | Reader = "bytes",
        value: Format | Reader = "bytes",
        fields: Sequence[str] = ("topic", "partition", "offset", "key", "value"),
        many: bool = False,
        out_of_range: OutOfRange = "earliest",
        progress: ZooKeeperProgress | None = None,
        on_reset: OnReset = "fail",
        force_from_start: bool = False,
        max_uncommitted: int | None = 10_000_000,
        rate: float | None = None,
        message_bytes: int = 0,
        keep_bytes: int = 1_000_000,
        commit_secs: float = 1.0,
        renew_secs: float = 3600.0,
        refresh_secs: float = 5.0,
        connect_secs: float = 60.0,
        client: Mapping[str, Any] | None = None,
        timeout_secs: float = 10.0,
    ) -> None:
        if not group:
            raise ConfigError("group is empty: name the consumer group that progress is kept for")
        if until not in (None, "latest"):
            raise ConfigError(f"until is {until!r}: use 'latest' or None")
        self._cluster = Cluster(
            bootstrap_servers=bootstrap_servers, client=client or {}, timeout_secs=timeout_secs
        )
        self._group = group
        self._source = Subscription(
            topics=topics,
            start=start,
            out_of_range=out_of_range,
            on_reset=on_reset,
            force_from_start=force_from_start,
        )
        shape = Shape(tuple(fields), reader_of(key), reader_of(value), many)
        self._reader = SplitReader(self._cluster, shape)
        self.outputs: Outputs = _outputs(fields, type_of(key), None if many else type_of(value))
        self._message_bytes = message_bytes
        self._connect_secs = connect_secs
        limits = Limits(uncommitted=max_uncommitted, rate=rate)
        self._assignment = Assignment(limits, bounded=until is not None)
        self._follower = Follower(
            *(self._cluster, group, self._source, progress, self._assignment),
            commit_secs=commit_secs,
            renew_secs=renew_secs,
            refresh_secs=refresh_secs,
        )
        self._clock: Clock = SystemClock()
        self._keep_bytes = keep_bytes
        self._keeper: Keeper | None = None
        self._sizes: RecordSizes | None = None
        self._topology_id = ""

    def open(self, config: Config, context: TaskContext) -> None:
        """Find the partitions of this task, waiting for the cluster if need be."""
        self._check_letters(config.dead_letter_sink)
        tasks, mine = len(context.component_tasks(context.component)), context.task_index
        self._clock = context.clock
        self._topology_id = self._topology_id or f"{context.topology}-{secrets.token_hex(4)}"
        self._follower.open(
            self._topology_id,
            context.topology,
            lambda partition: _place_of(partition, tasks) == mine,
            self._clock,
            self._connect_secs,
        )
        if not self._message_bytes and config.max_spout_pending is None:
            share = config.max_pending_bytes // tasks
            self._sizes = RecordSizes(self._reader.records, share, self._clock)
            for split in self._assignment.preview():
                self._sizes.learn(split)
        if self._keep_bytes:
            self._keeper = Keeper(self._reader.records, self._keep_bytes)

    def close(self) -> None:
        """Commit the progress of all partitions and leave the cluster."""
        self._follower.close()
        if self._sizes is not None:
            self._sizes.close()
        if self._keeper is not None:
            self._keeper.close()

    def plan(self, limit: int) -> list[Split]:
        """Return ranges of offsets, of all partitions in turn; none while the cluster is away."""
        self._follower.take_news()
        self._follower.commit_if_due()
        if not self._follower.ready:
            return []
        mean = self._message_bytes
        if self._sizes is not None:
            self._sizes.note(self._assignment.preview())
            # the engine asks several times for one batch, and learns sizes only with the answers
            limit = min(limit, self._sizes.limit - self._assignment.in_flight)
            mean = self._sizes.mean
        splits = self._assignment.plan(limit, self._clock.monotonic()) if limit > 0 else []
        return [replace(split, size=split.count * mean) for split in splits]

    def read(self, split: Split) -> Iterator[Messages]:
        """Read a range of offsets, or single offsets of the range (on an executor)."""
        return self._reader.messages(split)

    def reads(self, place: Hashable) -> bool:
        """Return whether a pattern matches a topic that the topology writes to.

        A user names a topic on purpose: a loop is then the user's wish.
        """
        return (
            isinstance(self._source.topics, re.Pattern)
            and isinstance(place, Target)
            and self._cluster.holds(place)
            and self._source.picks(place.topic)
        )

    def merge(self, splits: Sequence[Split]) -> list[Split]:
        """Read single records of one partition together: seeking costs as much as a whole fetch.

        Kept records are not even read.
        """
        merged = merge_splits(splits)
        return merged if self._keeper is None else [*map(self._keeper.attach, merged)]

    def origins(self, split: Split) -> list[Mapping[str, Any]]:
        """The records as they are: offset, timestamp, key, value and headers."""
        return self._reader.origins(split)

    def msg_id(self, split: Split, position: int) -> tuple[str, int, int]:
        """Return topic, partition and offset."""
        number = position if split.only is None else split.only[position]
        return (*partition_of(split), split.data["start"] + number)

    def ack(self, split: Split, positions: Positions) -> None:
        """Note finished messages."""
        self._finish(split, positions)

    def fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        """Note failed messages, which hold back the commit, and keep the records."""
        self._assignment.fail(split, positions, failure)
        again = failure.counted and not failure.final and failure.reason is not Reason.LOST
        if self._keeper is not None and again:
            self._keeper.want(split, positions)

    def give_up(self, split: Split, positions: Positions, failure: Failure) -> None:
        """Note given-up messages."""
        self._finish(split, positions, given_up=True)

    def partition(self, split: Split) -> str:
        """Topic and number."""
        return str(partition_of(split))

    def partitions(self) -> list[PartitionStatistics]:
        """The statistics of this task's partitions."""
        counts = Counter[Partition]() if self._keeper is None else self._keeper.counts()
        kept = {str(partition): count for partition, count in counts.items()}
        age_secs = self._follower.age_secs
        return [
            replace(one, kept=kept.get(one.partition, 0), seen_secs=age_secs)
            for one in self._assignment.statistics(self._clock.monotonic())
        ]

    def pause(self, partitions: Collection[str] = ()) -> None:
        """Pause these partitions (``"orders/0"``), or all, until :meth:`resume`."""
        self._assignment.halt(partitions)

    def resume(self, partitions: Collection[str] = ()) -> None:
        """Resume these partitions, or all."""
        self._assignment.resume(partitions)

    def snapshot(self) -> Any:
        """Return the progress of each partition."""
        return {"topology_id": self._topology_id, "partitions": self._assignment.snapshot()}

    def restore(self, snapshot: Any) -> None:
        """Take up the progress of an earlier run."""
        self._topology_id = snapshot["topology_id"]
        self._assignment.restore(snapshot["partitions"])

    def exhausted(self) -> bool:
        """Whether a spout with ``until`` has planned everything."""
        return self._assignment.exhausted

    def __repr__(self) -> str:
        return f"KafkaSpout({self._source.topics!r}, group={self._group!r}, {self._cluster!r})"

    def _check_letters(self, sink: object) -> None:
        """Refuse to read one's own dead letters: each would become a letter again, for ever."""
        for place in getattr(sink, "writes_to", ()):
            if self._cluster.holds(place) and self._source.picks(place.topic):
                raise ConfigError(
                    f"the topics {self._source.topics!r} take in {place}, where the dead letters "
                    f"go: leave that topic out"
                )

    def _finish(self, split: Split, positions: Positions, *, given_up: bool = False) -> None:
        self._assignment.finish(split, positions, given_up=given_up)
        if self._keeper is not None:
            self._keeper.forget(split, positions)
        self._follower.commit_if_due()


def _outputs(fields: Sequence[str], key: str | None, value: str | None) -> Outputs:
    """The declared stream, with types if all types are known."""
    types = {**FIELDS, "key": key, "value": value}
    if all(types.get(name) for name in fields):
        return ", ".join(f"{name} {types[name]}" for name in fields)
    return list(fields)


def _place_of(partition: Partition, tasks: int) -> int:
    """The task of a partition: the same in every run, with each topic spread evenly."""
    return (zlib.crc32(partition.topic.encode()) + partition.number) % tasks
