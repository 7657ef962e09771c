"""A queue in memory that hands out messages by a lease, and can be told to fail."""

import itertools
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Self, final

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.queues.decoding import Decoder
from sparkstorm.queues.queue import Delivery, Lease, Queue, QueueLostError
from sparkstorm.queues.spout import QueueSpout

__all__ = ["MemoryQueue", "MemoryQueueServer", "MemoryQueueSpout"]


@final
@dataclass(slots=True)
class _Message:
    """A message on the server; the numbers of its lease and client are 0 while it is ready."""

    body: bytes
    group: str | None
    deliveries: int = 0
    lease: int = 0
    client: int = 0
    until: float = 0.0


@final
class MemoryQueueServer:
    """The server's side: messages in order, leases, and faults on demand.

    Args:
        lease_secs: after how long leases end; None: with the connection.
        clock: the source of time.

    Attributes:
        name: finds the server again after pickle, in this process.
        away: whether each call fails.
        delivered: the message ids in the order of their deliveries.

    >>> server = MemoryQueueServer(lease_secs=30)
    >>> server.send(["a", "b"])
    >>> queue = MemoryQueue(server)
    >>> queue.connect()
    >>> [delivery.body for delivery in queue.take(1, 0)]
    [b'a']
    >>> server.ready, server.pending
    (1, 1)
    """

    _SERVERS: ClassVar[dict[str, Self]] = {}
    _numbers: ClassVar["itertools.count[int]"] = itertools.count(1)

    def __init__(self, *, lease_secs: float | None = None, clock: Clock | None = None) -> None:
        self.name = f"memory-{next(self._numbers)}"
        self.lease_secs = lease_secs
        self.away = False
        self.delivered: list[int] = []
        self._clock = clock or SystemClock()
        self._messages: dict[int, _Message] = {}
        self._leases = itertools.count(1)
        self._ids = itertools.count(1)
        self._lock = threading.RLock()
        self._SERVERS[self.name] = self

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _server_of, (self.name,)

    def send(self, bodies: Iterable[str | bytes], group: str | None = None) -> None:
        """Put messages at the end of the queue."""
        with self._lock:
            for body in bodies:
                data = body.encode() if isinstance(body, str) else body
                self._messages[next(self._ids)] = _Message(data, group)

    @property
    def ready(self) -> int:
        """How many messages wait for a consumer."""
        with self._lock:
            return len(self._messages) - self.pending

    @property
    def pending(self) -> int:
        """How many messages are handed out and not settled."""
        with self._lock:
            return sum(self._is_leased(message) for message in self._messages.values())

    def disconnect(self, client: int) -> None:
        """Drop a connection: leases without a time end with it."""
        with self._lock:
            for message in self._messages.values():
                if message.client == client and self.lease_secs is None:
                    message.lease = message.client = 0

    def take(self, client: int, limit: int) -> list[Delivery]:
        """Hand out messages; of a group only if no message of the group is handed out."""
        with self._lock:
            closed = {
                one.group for one in self._messages.values() if one.group and self._is_leased(one)
            }
            ready = (
                number
                for number, one in self._messages.items()
                if not self._is_leased(one) and one.group not in closed
            )
            return [self._hand_out(number, client) for number in itertools.islice(ready, limit)]

    def extend(self, leases: Collection[Lease]) -> list[Lease]:
        """Let leases last anew; return those that have ended."""
        with self._lock:
            live = {one.lease: one for one in self._messages.values() if self._is_leased(one)}
            for lease in leases:
                if lease in live:
                    live[lease].until = self._end_of_lease()
            return [lease for lease in leases if lease not in live]

    def settle(self, leases: Collection[Lease]) -> None:
        """Delete messages, if their leases live."""
        with self._lock:
            gone = set(leases)
            for number, one in list(self._messages.items()):
                if self._is_leased(one) and one.lease in gone:
                    del self._messages[number]

    def give_back(self, leases: Collection[Lease]) -> None:
        """Make messages ready again, without counting their delivery."""
        with self._lock:
            gone = set(leases)
            for one in self._messages.values():
                if self._is_leased(one) and one.lease in gone:
                    one.lease = one.client = 0
                    one.deliveries -= 1

    def _hand_out(self, number: int, client: int) -> Delivery:
        message = self._messages[number]
        message.deliveries += 1
        message.lease, message.client = next(self._leases), client
        message.until = self._end_of_lease()
        self.delivered.append(number)
        return Delivery(
            message_id=number,
            lease=message.lease,
            body=message.body,
            deliveries=message.deliveries,
            group=message.group,
        )

    def _end_of_lease(self) -> float:
        return self._clock.monotonic() + (inf if self.lease_secs is None else self.lease_secs)

    def _is_leased(self, message: _Message) -> bool:
        return message.lease != 0 and self._clock.monotonic() < message.until


def _server_of(name: str) -> MemoryQueueServer:
    return MemoryQueueServer._SERVERS[name]  # noqa: SLF001 - its own pickle


@final
class MemoryQueue:
    """One connection to a :class:`MemoryQueueServer`.

    Attributes:
        refuse: so many further settlements are refused.
    """

    _clients: ClassVar["itertools.count[int]"] = itertools.count(1)

    def __init__(self, server: MemoryQueueServer) -> None:
        self.refuse = 0
        self._server = server
        self._client = 0

    @property
    def name(self) -> str:
        """The server's name."""
        return f"queue {self._server.name}"

    @property
    def lease_secs(self) -> float | None:
        """As the server has been told."""
        return self._server.lease_secs

    @property
    def leases_survive(self) -> bool:
        """Leases with a time survive."""
        return self._server.lease_secs is not None

    def connect(self) -> None:
        """Connect as a new client."""
        self._check_server()
        self._client = next(self._clients)

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Take messages; never waits."""
        self._check()
        return self._server.take(self._client, limit)

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Extend leases."""
        self._check()
        return self._server.extend(leases)

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Delete messages, but for the first ``refuse``."""
        self._check()
        refused, leases = list(leases)[: self.refuse], list(leases)[self.refuse :]
        self.refuse -= len(refused)
        self._server.settle(leases)
        return refused

    def give_back(self, leases: Collection[Lease]) -> None:
        """Give messages back."""
        self._check()
        self._server.give_back(leases)

    def close(self) -> None:
        """Disconnect."""
        self._server.disconnect(self._client)
        self._client = 0

    def _check(self) -> None:
        self._check_server()
        if not self._client:
            raise QueueLostError("the connection is closed")

    def _check_server(self) -> None:
        if self._server.away:
            raise QueueLostError("the server is away")


class MemoryQueueSpout(QueueSpout):
    """Emits the messages of a :class:`MemoryQueueServer`; for tests of topologies.

    Args:
        server: the server, in this process.
        options: those of :class:`~sparkstorm.queues.spout.QueueSpout`.
    """

    def __init__(
        self,
        server: MemoryQueueServer,
        *,
        fields: str = "body",
        decode: Decoder = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> None:
        super().__init__(
            fields=fields,
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )
        self._server = server

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return a connection to the server."""
        return MemoryQueue(self._server)
