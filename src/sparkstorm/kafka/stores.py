"""Where progress is kept beside the checkpoint: a protocol, and Kafka's own group offsets."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, final

from sparkstorm.errors import CheckpointError
from sparkstorm.kafka.ack_map import decode_acks, encode_acks
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.ranges import Range
from sparkstorm.texts.logs import logger_of

__all__ = ["Committed", "GroupOffsets", "GroupStore", "ProgressStore", "Stored", "to_text"]

Committed: TypeAlias = tuple[int, str]
"""A committed offset and the text stored with it."""

_MOST_TEXT = 4095
"""What a broker takes with an offset by default, in UTF-16 units, less the client's NUL."""

_logger = logger_of("sparkstorm.kafka")


class Stored(NamedTuple):
    """The progress of one partition as it is stored."""

    offset: int
    done: Sequence[Range] = ()
    topology: str = ""


class ProgressStore(Protocol):
    """Keeps the progress of partitions, for the next run and for tools that show the lag.

    All methods run on one thread at a time, may block, and raise ``SpoutConnectionError`` if the
    store does not answer.
    """

    def load(self, partitions: Sequence[Partition]) -> dict[Partition, Stored]:
        """Return what is stored of these partitions, where anything is."""
        ...

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> int:
        """Store progress; return how many acks beyond the offsets did not fit."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class GroupOffsets(Protocol):
    """What a group has committed; see :class:`sparkstorm.kafka.client.desk.KafkaDesk`."""

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        """What the group has committed, where it has."""
        ...

    def commit(self, offsets: Mapping[Partition, Committed]) -> None:
        """Commit offsets for the group, each with its text."""
        ...


@final
class GroupStore:
    """Kafka's consumer group offsets; acks beyond an offset are in its metadata.

    Kafka lets anybody commit for a group without members. So each commit looks first whether the
    last one is still there: of two runs that commit for one group, the earlier one ends.

    Args:
        desk: the cluster and the group.
        topology: the topology's name.
    """

    def __init__(self, desk: GroupOffsets, topology: str) -> None:
        self._desk = desk
        self._topology = topology
        self._ours: dict[Partition, list[Committed]] = {}
        """What we committed last, and what we may have: a commit whose answer was lost."""

    def load(self, partitions: Sequence[Partition]) -> dict[Partition, Stored]:
        """Return what the group has committed."""
        return {
            partition: _from_text(partition, offset, text)
            for partition, (offset, text) in self._desk.committed(partitions).items()
        }

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> int:
        """Commit the offsets.

        Raises:
            CheckpointError: somebody else has committed since we did.
        """
        self._check_unchanged([partition for partition in progress if partition in self._ours])
        dropped, commits = 0, {}
        for partition, stored in progress.items():
            text, kept_to = to_text(stored, self._topology)
            dropped += sum(stop - start for start, stop in stored.done if start >= kept_to)
            commits[partition] = (stored.offset, text)
            self._ours.setdefault(partition, []).append(commits[partition])
        self._desk.commit(commits)
        self._ours.update((partition, [commit]) for partition, commit in commits.items())
        return dropped

    def _check_unchanged(self, partitions: Sequence[Partition]) -> None:
        for partition, (offset, text) in self._desk.committed(partitions).items():
            if (offset, text) not in self._ours[partition]:
                who = _from_text(partition, offset, text).topology or "another program"
                raise CheckpointError(
                    f"{who!r} has committed the offset {offset} of {partition} for our consumer "
                    f"group: let only one topology commit for a group"
                )

    def close(self) -> None:
        """Nothing: the desk is closed by its owner."""


def to_text(stored: Stored, topology: str) -> tuple[str, int]:
    """The metadata of a commit, and up to which offset it knows what is done.

    >>> to_text(Stored(7, [(8, 10)]), "enrich")
    ('{"sparkstorm":1,"topology":"enrich","acks":"bYA"}', 10)
    """
    frame = {"sparkstorm": 1, "topology": topology, "acks": ""}
    room = _MOST_TEXT - len(_to_json(frame))
    acks, kept_to = encode_acks(stored.offset, stored.done, max(room, 0))
    return _to_json({**frame, "acks": acks}), kept_to


def _to_json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))


def _from_text(partition: Partition, offset: int, text: str) -> Stored:
    """What others wrote there is not ours: then only the offset counts."""
    try:
        data = json.loads(text)
        acks = decode_acks(offset, data["acks"]) if data["sparkstorm"] == 1 else []
        return Stored(offset, acks, str(data["topology"]))
    except (ValueError, TypeError, KeyError) as error:
        if "sparkstorm" in text:
            _logger.warning(
                "%s: the acks stored beyond the offset %s are unreadable (%s): what was done "
                "beyond it is processed again",
                *(partition, offset, error),
            )
        return Stored(offset)
