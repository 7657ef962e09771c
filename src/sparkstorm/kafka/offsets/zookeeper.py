"""Progress in ZooKeeper, in the nodes and the JSON of Storm's first Kafka spouts.

The one module that knows kazoo, and only when a store is opened: executors, who carry a spout's
settings about, need no ZooKeeper client.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

from sparkstorm.errors import CheckpointError, ConfigError, EnvironmentFault, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.acks import decode_acks, encode_acks
from sparkstorm.kafka.offsets.ranges import Range
from sparkstorm.kafka.offsets.stored import CommittedOffset, ProgressStore, Saved, Stored
from sparkstorm.texts.credentials import Secret, untold
from sparkstorm.texts.logs import logger_of

__all__ = ["ZooKeeperProgress"]

_MOST_TEXT = 100_000
"""Characters of acks in a node; ZooKeeper takes a megabyte."""

_OF_ONE_TOPIC = "partition_{}"
_PER_TOPIC = "{}/partition_{}"

_logger = logger_of("sparkstorm.kafka")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperProgress:
    """Keep the progress of a :class:`KafkaSpout` in ZooKeeper instead of Kafka's group offsets.

    The node of a partition is ``<root>/<id>/partition_<n>``, as Storm's spouts had it, so that a
    run goes on where one of these ended; with several topics or a pattern it is
    ``<root>/<id>/<topic>/partition_<n>``. When a topic is added, or only one is left, the run goes
    on from the nodes of the other form. A node of another topic is an error, never overwritten.

    Args:
        hosts: ``host:port``, several with commas between.
        root: the node under which the spouts of a cluster keep their progress.
        id: the spout's own name.
        auth: credentials, as (scheme, credential) pairs. Never shown; only the driver uses them.
        timeout_secs: how long ZooKeeper may take.
    """

    hosts: str
    root: str
    id: str
    auth: Sequence[tuple[str, str]] = field(default=(), repr=False)
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        hidden = tuple((scheme, Secret(credential)) for scheme, credential in self.auth)
        object.__setattr__(self, "auth", hidden)
        if not self.root.startswith("/") or not self.id.strip("/"):
            raise ConfigError(
                f"root {self.root!r} and id {self.id!r} name no node: root begins with /, and "
                f"neither is empty"
            )

    def open(self, topology: Mapping[str, str], *, several: bool) -> ProgressStore:
        """Return the store; it connects when it is first used.

        Args:
            topology: id and name.
            several: whether there may be more than one topic.
        """
        return _Store(self, topology, several=several)


@final
class _Store:
    """The store of one spout task."""

    def __init__(
        self, settings: ZooKeeperProgress, topology: Mapping[str, str], *, several: bool
    ) -> None:
        self._settings = settings
        self._topology = dict(topology)
        self._several = several
        self._client: Any = None

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        """Return what the nodes hold."""
        found = {}
        with self._connected() as ask:
            for partition in ids:
                stored = self._newest(ask, partition)
                if stored is not None:
                    found[partition] = stored
        return found

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> Saved:
        """Write the nodes, each only if it is still what we saw."""
        total, held = 0, {}
        with self._connected() as ask:
            for partition, stored in progress.items():
                acks, dropped = encode_acks(stored.offset, stored.done, _MOST_TEXT)
                total += dropped
                topic = topics.get(partition.topic)
                leader = topic.leaders.get(partition.number) if topic is not None else None
                self._write(ask, partition, self._to_json(partition, stored, leader, acks))
                held[partition] = CommittedOffset(stored.offset, self._topology["id"])
        return Saved(held, total)

    def close(self) -> None:
        """Leave ZooKeeper."""
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    def _newest(self, ask: "_Ask", partition: Partition) -> Stored | None:
        """Read our node, or that of the other form if it was written later."""
        path, other = self._path(partition), self._path(partition, several=not self._several)
        data, wrote = ask.get(path)
        other_data, other_wrote = ask.get(other)
        if other_wrote > wrote and _topic_of(other_data) == partition.topic:
            _logger.warning(
                "%s: going on from the node %s; from now on progress is kept in %s",
                *(partition, other, path),
            )
            return _from_json(other, other_data, partition)
        return None if wrote < 0 else _from_json(path, data, partition)

    def _write(self, ask: "_Ask", partition: Partition, data: bytes) -> None:
        path = self._path(partition)
        before, wrote = ask.get(path)
        if wrote < 0:
            ask.create(path, data)
            return
        _from_json(path, before, partition)
        ask.replace(path, data)

    def _path(self, partition: Partition, *, several: bool | None = None) -> str:
        several = self._several if several is None else several
        name = _PER_TOPIC.format(*partition) if several else _OF_ONE_TOPIC.format(partition.number)
        return f"{self._settings.root.rstrip('/')}/{self._settings.id.strip('/')}/{name}"

    def _to_json(
        self, partition: Partition, stored: Stored, leader: tuple[str, int] | None, acks: str
    ) -> bytes:
        host, port = leader or ("", 0)
        data = {
            "topology": self._topology,
            "offset": stored.offset,
            "partition": partition.number,
            "broker": {"host": host, "port": port},
            "topic": partition.topic,
            # ours: Storm's spouts pass over these
            "topic_id": stored.topic_id,
            "base": stored.offset,
            "acks": acks,
        }
        return json.dumps(data).encode()

    @contextmanager
    def _connected(self) -> Iterator["_Ask"]:
        """Around requests: connect if need be, and put what goes wrong into our words."""
        try:
            from kazoo.client import KazooClient
            from kazoo.exceptions import KazooException
            from kazoo.handlers.threading import KazooTimeoutError
        except ImportError as error:
            raise EnvironmentFault(
                "progress in ZooKeeper needs the package kazoo: pip install 'sparkstorm[zookeeper]'"
            ) from error
        try:
            if self._client is None:
                self._client = self._connect(KazooClient)
            yield _Ask(self._client, self._settings.timeout_secs)
        except (KazooException, KazooTimeoutError) as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise SpoutConnectionError(
                f"ZooKeeper at {self._settings.hosts} does not answer as it should: {what}"
            ) from untold(error)

    def _connect(self, kind: Callable[..., Any]) -> Any:
        secs = self._settings.timeout_secs
        client = kind(
            hosts=self._settings.hosts,
            timeout=secs,
            auth_data=list(self._settings.auth) or None,
        )
        try:
            client.start(timeout=secs)
        except BaseException:
            client.stop()
            client.close()
            raise
        return client


class _Ask:
    """Requests that end in time: kazoo's own wait until a lost server is back."""

    def __init__(self, client: Any, secs: float) -> None:
        self._client = client
        self._secs = secs
        self._versions: dict[str, int] = {}

    def get(self, path: str) -> tuple[bytes, int]:
        """Return a node's data, and when it was written on ZooKeeper's count; -1 if it is not."""
        from kazoo.exceptions import NoNodeError

        try:
            data, stat = self._client.get_async(path).get(timeout=self._secs)
        except NoNodeError:
            return b"", -1
        self._versions[path] = stat.version
        return data, stat.mzxid

    def create(self, path: str, data: bytes) -> None:
        """Make a node, and those above it."""
        self._client.create_async(path, data, makepath=True).get(timeout=self._secs)

    def replace(self, path: str, data: bytes) -> None:
        """Write a node, if it is still as it was read."""
        self._client.set_async(path, data, self._versions[path]).get(timeout=self._secs)


def _topic_of(data: bytes) -> str | None:
    """Return the topic that a node belongs to, or None if it holds no progress."""
    try:
        return str(json.loads(data)["topic"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


def _from_json(path: str, data: bytes, partition: Partition) -> Stored:
    """Read a node, of ours or of one of Storm's spouts."""
    try:
        values = json.loads(data)
        topic, offset = str(values["topic"]), int(values["offset"])
        run = str(values["topology"]["id"])
        topic_id = str(values.get("topic_id", ""))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"the node {path} does not hold the progress of a spout ({error!r}): give the spout "
            f"another id, or remove the node"
        ) from error
    if topic != partition.topic:
        raise CheckpointError(
            f"the node {path} holds the progress of the topic {topic!r}, not of "
            f"{partition.topic!r}: give the spout an id of its own"
        )
    if values.get("base", offset) != offset:
        _logger.warning(
            "the node %s: another program has changed its offset to %s: messages that were done "
            "beyond it are processed again",
            *(path, offset),
        )
        return Stored(offset)
    return Stored(offset, _acks_of(path, offset, values.get("acks", "")), run, topic_id)


def _acks_of(path: str, offset: int, acks: Any) -> list[Range]:
    try:
        return decode_acks(offset, acks)
    except (ValueError, TypeError, AttributeError) as error:
        _logger.warning(
            "the node %s: its acks are unreadable (%s): messages that were done beyond the offset "
            "%s are processed again",
            *(path, error, offset),
        )
        return []
