"""Queues: what the lease keeper asks of a system that hands out messages by a lease.

A queue hands out a message to one consumer. Others do not get the message while the lease lasts; it
is handed out again if the lease ends unsettled.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, final

__all__ = ["Delivery", "Lease", "Queue", "QueueLostError"]

Lease: TypeAlias = Hashable
"""Names one delivery to its queue: a delivery tag, a receipt handle, an entry's id."""


class QueueLostError(Exception):
    """The connection to a queue is gone; the keeper connects again, with backoff.

    An adapter raises it for whatever a later try may mend: a refused or reset connection, a server
    that starts, a time-out. What no later try mends (credentials, a missing queue) is an
    :class:`~sparkstorm.errors.EnvironmentFault` or a
    :class:`~sparkstorm.errors.ConfigError`.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message that a queue has handed out.

    Attributes:
        message_id: the message's own identity, the same at each delivery.
        lease: names this delivery; new at each delivery, or the message's id where the queue knows
            no other name.
        body: the payload.
        deliveries: how often the queue has handed out the message, this time included; 0 if the
            queue does not count.
        group: messages of a group are handed out in order; None without a group.
        attributes: headers, routing key, timestamps: for decoders that ask for more than the body.
    """

    message_id: Hashable
    lease: Lease
    body: bytes
    deliveries: int = 0
    group: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Queue(Protocol):
    """One task's connection to a queue.

    The keeper calls all methods, on one thread; each but ``close`` may raise
    :class:`QueueLostError`.
    """

    @property
    def name(self) -> str:
        """The queue and its server, for messages to people; without a password."""
        ...

    @property
    def lease_secs(self) -> float | None:
        """After how many seconds a lease ends; None if it lasts as long as the connection."""
        ...

    @property
    def leases_survive(self) -> bool:
        """Whether leases go on without the connection, so that a new connection may settle them."""
        ...

    def connect(self) -> None:
        """Connect, and look whether the queue is there and may be used.

        Raises:
            EnvironmentFault: credentials, rights, a missing queue: no later try helps.
        """
        ...

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Take at most ``limit`` messages; wait for the first at most ``wait_secs``.

        The keeper calls it often, with a limit of 0 too: the time to answer heartbeats.
        """
        ...

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Let leases last ``lease_secs`` from now; return those that have ended already."""
        ...

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Delete messages; return those that the queue did not delete but may delete later."""
        ...

    def give_back(self, leases: Collection[Lease]) -> None:
        """Let others have messages at once, without counting a failure where the queue can."""
        ...

    def close(self) -> None:
        """Close the connection; never raises."""
        ...
