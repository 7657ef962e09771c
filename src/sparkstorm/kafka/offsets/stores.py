"""Kafka's own group offsets as a store of progress."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, final

from sparkstorm.errors import CheckpointError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.stored import CommittedOffset, Saved, Stored
from sparkstorm.kafka.offsets.texts import (
    MOST_TEXT,
    OtherTopicError,
    UnfitTextError,
    author_of,
    from_text,
    to_text,
)
from sparkstorm.texts.logs import logger_of

__all__ = ["Committed", "GroupOffsets", "GroupStore", "TextTooLongError"]

Committed: TypeAlias = tuple[int, str]
"""A committed offset and the text stored with it."""

_MOST_OURS = 8
"""A partition's possible commits at the broker: a lost answer leaves two."""

_logger = logger_of("sparkstorm.kafka")


class TextTooLongError(SpoutConnectionError):
    """The brokers take the offsets, but refuse the length of the texts."""


class GroupOffsets(Protocol):
    """The offsets of a group; see :class:`sparkstorm.kafka.client.desk.KafkaDesk`."""

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        """Return the group's committed offsets, where there are any."""
        ...

    def commit(self, offsets: Mapping[Partition, Committed]) -> None:
        """Commit offsets for the group, each with its text.

        Raises:
            TextTooLongError: the brokers allow only shorter texts.
        """
        ...


@final
class GroupStore:
    """Kafka's consumer group offsets; acks beyond an offset are in its metadata.

    Kafka lets anybody commit for a group without members. So each commit first checks that the
    commit before is still there: of two runs for one group, the earlier run ends.

    Args:
        desk: the cluster and the group.
        run: the name of this run, the same after a restart.
    """

    def __init__(self, desk: GroupOffsets, run: str) -> None:
        self._desk = desk
        self._run = run
        self._limit = MOST_TEXT
        self._ours: dict[Partition, list[Committed]] = {}
        """Possible commits of this run at the broker: the last seen, and later commits."""

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        """Return the group's committed progress."""
        return {
            partition: _read(partition, committed, ids[partition])
            for partition, committed in self._desk.committed(list(ids)).items()
        }

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> Saved:
        """Commit the offsets, with texts as long as the brokers allow.

        Raises:
            CheckpointError: somebody else has committed since this run did.
        """
        self._check_unchanged([partition for partition in progress if partition in self._ours])
        while True:
            commits, dropped = self._texts(progress)
            for partition, commit in commits.items():
                seen, *later = self._ours.get(partition) or [commit]
                self._ours[partition] = [seen, *later[-_MOST_OURS:], commit]
            try:
                self._desk.commit(commits)
                break
            except TextTooLongError as error:
                self._shorten(max(len(text) for _, text in commits.values()), error)
        self._ours.update((partition, [commit]) for partition, commit in commits.items())
        held = {
            p: CommittedOffset(at, self._run, bare=not text) for p, (at, text) in commits.items()
        }
        return Saved(held, dropped)

    def close(self) -> None:
        """Do nothing: the desk is closed by its owner."""

    def _texts(
        self, progress: Mapping[Partition, Stored]
    ) -> tuple[dict[Partition, Committed], int]:
        commits, total = {}, 0
        for partition, stored in progress.items():
            text, dropped = to_text(stored._replace(run=self._run), self._limit)
            commits[partition] = (stored.offset, text)
            total += dropped
        return commits, total

    def _shorten(self, refused: int, error: TextTooLongError) -> None:
        """Take less room for texts from now on."""
        if not refused:
            raise error
        self._limit = refused * 3 // 4
        _logger.warning(
            "the brokers refuse a text of %s characters beside a committed offset "
            "(offset.metadata.max.bytes): from now on texts have at most %s, and acks beyond the "
            "offset that find no room are in the checkpoint alone",
            *(refused, self._limit),
        )

    def _check_unchanged(self, partitions: Sequence[Partition]) -> None:
        for partition, found in self._desk.committed(partitions).items():
            ours = self._ours[partition]
            if found not in ours:
                raise CheckpointError(
                    f"{_author(found)} has committed the offset {found[0]} of {partition} for our "
                    f"consumer group: let only one topology commit for a group, and stop it before "
                    f"its offsets are reset"
                )
            # what is there stays first; commits after it may still arrive
            self._ours[partition] = [found, *(one for one in ours if one != found)]


def _read(partition: Partition, committed: Committed, topic_id: str) -> Stored:
    """Read a text; if the text is about another offset, only the offset counts."""
    offset, text = committed
    try:
        return from_text(offset, text, topic_id)
    except UnfitTextError as error:
        _logger.warning(
            "%s: the text beside the committed offset %s is ignored: %s. Messages that were done "
            "beyond the offset are processed again",
            *(partition, offset, error),
        )
        # a commit of ours that was late for the deletion of its topic is no reset of the new one
        return Stored(offset, run=error.run if isinstance(error, OtherTopicError) else "")


def _author(committed: Committed) -> str:
    try:
        run = author_of(committed[1])
    except UnfitTextError:
        run = ""
    return repr(run) if run else "another program"
