"""Logs that were cut and have grown again: the epochs of their leaders tell.

A new leader that is not up to date cuts the log, and producers fill the log up again. Then the end
may lie beyond the known end. Each leader has an epoch. A consumer that begins with the epoch of an
earlier leader learns the end of the earlier leader's records.
"""

import re
import time
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from sparkstorm.kafka.client.troubles import make
from sparkstorm.kafka.cluster import Cluster, Partition

__all__ = ["End", "Epochs", "find_cuts"]

_CUT = re.compile(r"truncation.*broker end offset is (\d+)", re.DOTALL)
"""librdkafka's only word for a cut log."""

_LOOK_SECS = 0.1


class End(NamedTuple):
    """The end of a log under a leader."""

    offset: int
    epoch: int


@final
class Epochs:
    """Remembers the furthest end of each log under each leader, until a look at the next leader.

    >>> epochs, p = Epochs(), Partition("t", 0)
    >>> epochs.note(p, 200, 0)
    >>> epochs.suspects()
    {}
    >>> epochs.note(p, 220, 1)
    >>> epochs.suspects()
    {Partition(topic='t', number=0): End(offset=200, epoch=0)}
    """

    def __init__(self) -> None:
        self._ends: dict[Partition, End] = {}
        self._suspects: dict[Partition, End] = {}

    def note(self, partition: Partition, offset: int, epoch: int | None) -> None:
        """Note a log's end under a leader; old brokers tell no epoch."""
        if epoch is None or epoch < 0:
            return
        known = self._ends.get(partition)
        if known is not None and epoch > known.epoch:
            self._suspects.setdefault(partition, known)
        self._ends[partition] = End(offset, epoch)

    def suspects(self) -> dict[Partition, End]:
        """Return the known ends under earlier leaders."""
        return dict(self._suspects)

    def clear(self, partitions: Collection[Partition]) -> None:
        """Forget ends after a look."""
        for partition in partitions:
            self._suspects.pop(partition, None)


def find_cuts(cluster: Cluster, ends: Mapping[Partition, End]) -> dict[Partition, int]:
    """Return the offsets where logs were cut, before their ends under earlier leaders.

    Raises:
        SpoutConnectionError: no answer.
    """
    # a consumer asks only about leaders that are new to it, so each look needs one of its own
    consumer, troubles = make(
        Consumer,
        cluster,
        group_id="sparkstorm-reader",  # never joined and never committed to
        enable_auto_commit=False,
        auto_offset_reset="error",
        enable_partition_eof=True,
    )
    waiting, found = set(ends), {}
    deadline = time.monotonic() + cluster.timeout_secs
    consumer.assign(
        [
            TopicPartition(p.topic, p.number, end.offset, leader_epoch=end.epoch)
            for p, end in ends.items()
        ]
    )
    try:
        while waiting:
            for event in consumer.consume(1000, _LOOK_SECS):
                partition = Partition(event.topic(), event.partition())
                cut = _cut_of(event)
                if cut is not None and cut < ends[partition].offset:
                    found[partition] = cut
                if event.error() is None or cut is not None or _is_answer(event.error()):
                    waiting.discard(partition)
            if time.monotonic() > deadline:
                raise troubles.error(f"ask whether the log of {min(waiting)} was cut")
    finally:
        consumer.close()
    return found


def _cut_of(event: Any) -> int | None:
    said = _CUT.search(event.error().str()) if event.error() is not None else None
    return None if said is None else int(said[1])


def _is_answer(error: KafkaError) -> bool:
    """Whether an error answers the look: the log has the offset, or ends elsewhere."""
    return error.code() in (
        KafkaError._PARTITION_EOF,  # noqa: SLF001
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
        KafkaError.OFFSET_OUT_OF_RANGE,
    )
