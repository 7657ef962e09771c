"""Progress as a store keeps it, and the store as a protocol."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.ranges import Range

__all__ = ["CommittedOffset", "ProgressStore", "Saved", "Stored"]


class Stored(NamedTuple):
    """The stored progress of one partition."""

    offset: int
    done: Sequence[Range] = ()
    run: str = ""
    """The run that stored the offset; empty for another program, or if unknown."""
    topic_id: str = ""
    """The id of the offset's topic, where the store knows."""


class CommittedOffset(NamedTuple):
    """The progress of one partition last seen in a store; kept in the checkpoint."""

    offset: int
    run: str
    bare: bool = False
    """Whether the store had no room for the name of the run."""


class Saved(NamedTuple):
    """The result of storing progress."""

    held: Mapping[Partition, CommittedOffset]
    dropped: int = 0
    """Acks beyond the offsets, without room in the store."""


class ProgressStore(Protocol):
    """Keeps the progress of partitions, for the next run and for tools that show the lag.

    All methods run on one thread at a time, may block, and raise ``SpoutConnectionError`` if the
    store does not answer.
    """

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        """Return the stored progress of these partitions, where there is any.

        Args:
            ids: for each partition the id of its topic.
        """
        ...

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> Saved:
        """Store progress.

        Args:
            progress: by partition.
            topics: by name, for the brokers that lead the partitions.

        Raises:
            CheckpointError: another program has stored progress since this run did.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
