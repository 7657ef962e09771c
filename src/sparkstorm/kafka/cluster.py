"""How to reach a Kafka cluster: a value that travels to every process that talks to it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import Secret, hidden, looks_secret

__all__ = ["Cluster", "Partition", "Target", "Topic"]

_OURS = {
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "isolation.level",
    "transactional.id",
}
"""Properties that the guarantees rest on: nobody else may set them."""


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Topic(NamedTuple):
    """A topic as the cluster describes it; another one of the same name has another id."""

    name: str
    id: str
    leaders: Mapping[int, tuple[str, int] | None]
    """For each partition the host and port of its leader, if it has one now."""

    @property
    def partitions(self) -> list[Partition]:
        """Its partitions, in order."""
        return [Partition(self.name, number) for number in sorted(self.leaders)]


class Target(NamedTuple):
    """A topic of a cluster, as bolts and sinks name their targets."""

    servers: frozenset[str]
    topic: str

    def __str__(self) -> str:
        return f"the topic {self.topic!r}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The address of a cluster, and how its clients are to talk to it.

    Args:
        bootstrap_servers: ``host:port``, several with commas between.
        client: more properties of librdkafka, for security above all: ``{"security.protocol":
            "SASL_SSL", "sasl.password": …}``. They are handed to the clients as they are, travel to
            the executors with the topology, and are shown nowhere. A function in the place of a
            password is called where a client is made: then only the function travels.
        timeout_secs: how long one request may take.

    >>> Cluster(bootstrap_servers="k:9092", client={"sasl.password": "secret"})
    Cluster(bootstrap_servers='k:9092', timeout_secs=10.0)
    """

    bootstrap_servers: str
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "client", hidden(dict(self.client)))
        if not self.bootstrap_servers:
            raise ConfigError("bootstrap_servers is empty: write host:port of at least one broker")
        taken = sorted(_OURS & set(self.client))
        if taken:
            raise ConfigError(
                f"the client property {taken[0]!r} is set by sparkstorm: leave it out"
            )

    def place(self, topic: str) -> Target:
        """Return a topic of this cluster as a place."""
        servers = self.bootstrap_servers.lower().split(",")
        return Target(frozenset(server.strip() for server in servers), topic)

    def holds(self, place: object) -> bool:
        """Return whether a place is in this cluster, as far as the servers' names tell."""
        return isinstance(place, Target) and not place.servers.isdisjoint(self.place("").servers)

    @property
    def identity(self) -> str:
        """Return an opaque name for these settings, as a key of caches; it holds no secret."""
        client = sorted((name, str(value)) for name, value in self.properties().items())
        text = repr((client, self.timeout_secs))
        return hashlib.sha256(text.encode()).hexdigest()

    def properties(self) -> dict[str, Any]:
        """The properties that every client is made with."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            # what goes wrong is told by callbacks; librdkafka itself would write to stderr
            "log_level": 2,
            **{name: _fetched(name, value) for name, value in self.client.items()},
        }


def _fetched(name: str, value: Any) -> Any:
    """Return a property; a password may be given as a function that returns it."""
    return Secret(value()) if callable(value) and looks_secret(name) else value
