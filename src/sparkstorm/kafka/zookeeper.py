"""Progress in ZooKeeper, in the nodes and the JSON of Storm's first Kafka spouts.

The one module that knows kazoo, and only when a store is opened: executors, who carry a spout's
settings about, need no ZooKeeper client.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

from sparkstorm.errors import CheckpointError, ConfigError, EnvironmentFault, SpoutConnectionError
from sparkstorm.kafka.ack_map import decode_acks, encode_acks
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.stores import ProgressStore, Stored
from sparkstorm.texts.credentials import Secret, untold

__all__ = ["ZooKeeperProgress"]

_MOST_TEXT = 100_000
"""Characters of acks in a node; ZooKeeper takes a megabyte."""

_FOR_ALL_TOPICS = "partition_{}"
_PER_TOPIC = "{}/partition_{}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperProgress:
    """Keep the progress of a :class:`KafkaSpout` in ZooKeeper instead of Kafka's group offsets.

    The node of a partition is ``<root>/<id>/partition_<n>``, as Storm's spouts had it, so that a
    run goes on where one of these ended; with several topics or a pattern it is
    ``<root>/<id>/<topic>/partition_<n>``. A node of another topic is an error, never overwritten.

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
        return _Store(self, topology, _PER_TOPIC if several else _FOR_ALL_TOPICS)


@final
class _Store:
    """The store of one spout task."""

    def __init__(
        self, settings: ZooKeeperProgress, topology: Mapping[str, str], layout: str
    ) -> None:
        self._settings = settings
        self._topology = dict(topology)
        self._layout = layout
        self._client: Any = None

    def load(self, partitions: Sequence[Partition]) -> dict[Partition, Stored]:
        """Return what the nodes hold."""
        found = {}
        with self._connected() as client:
            for partition in partitions:
                path = self._path(partition)
                if client.exists(path):
                    found[partition] = _from_json(path, client.get(path)[0], partition)
        return found

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> int:
        """Write the nodes, each only if it is still what we saw."""
        dropped = 0
        with self._connected() as client:
            for partition, stored in progress.items():
                acks, kept_to = encode_acks(stored.offset, stored.done, _MOST_TEXT)
                dropped += sum(stop - start for start, stop in stored.done if start >= kept_to)
                topic = topics.get(partition.topic)
                leader = topic.leaders.get(partition.number) if topic is not None else None
                self._write(client, partition, self._to_json(partition, stored, leader, acks))
        return dropped

    def close(self) -> None:
        """Leave ZooKeeper."""
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    def _write(self, client: Any, partition: Partition, data: bytes) -> None:
        path = self._path(partition)
        if not client.exists(path):
            client.create(path, data, makepath=True)
            return
        before, stat = client.get(path)
        _from_json(path, before, partition)
        client.set(path, data, version=stat.version)

    def _path(self, partition: Partition) -> str:
        name = self._layout.format(
            *(partition if self._layout == _PER_TOPIC else (partition.number,))
        )
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
            "acks": acks,  # ours: Storm's spouts pass over it
        }
        return json.dumps(data).encode()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
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
                client = KazooClient(
                    hosts=self._settings.hosts,
                    timeout=self._settings.timeout_secs,
                    auth_data=list(self._settings.auth) or None,
                )
                client.start(timeout=self._settings.timeout_secs)
                self._client = client
            yield self._client
        except (KazooException, KazooTimeoutError) as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise SpoutConnectionError(
                f"ZooKeeper at {self._settings.hosts} does not answer as it should: {what}"
            ) from untold(error)


def _from_json(path: str, data: bytes, partition: Partition) -> Stored:
    """Read a node, of ours or of one of Storm's spouts."""
    try:
        values = json.loads(data)
        topic, offset = str(values["topic"]), int(values["offset"])
        acks = decode_acks(offset, str(values.get("acks", "")))
        topology = str(values["topology"]["name"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"the node {path} does not hold the progress of a spout ({error!r}): give the spout "
            f"another id, or remove the node"
        ) from error
    if topic != partition.topic:
        raise CheckpointError(
            f"the node {path} holds the progress of the topic {topic!r}, not of "
            f"{partition.topic!r}: give the spout an id of its own"
        )
    return Stored(offset, acks, topology)
