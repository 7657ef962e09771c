"""A queue of RabbitMQ, as the lease keeper asks for it."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, NamedTuple, cast, final

import pika
from pika import exceptions

from sparkstorm.queues.queue import Delivery, Lease, QueueLostError
from sparkstorm.queues.rabbitmq.broker import Broker, translated
from sparkstorm.queues.rabbitmq.identities import Identities, Identity

__all__ = ["RabbitQueue"]

_COUNTS = frozenset({"x-acquired-count", "x-delivery-count"})
"""Headers that RabbitMQ changes from delivery to delivery."""

_MOST_PREFETCHED = 65_535
"""AMQP's own limit."""

_FIRST_PREFETCH = 1000
"""So many messages the server hands out before the topology has asked for more."""


class _Tag(NamedTuple):
    """A lease: a delivery tag of one connection."""

    connection: int
    tag: int


@final
class RabbitQueue:
    """One consumer of a queue: a :class:`~sparkstorm.queues.queue.Queue`.

    The server hands out at most ``prefetch`` messages and keeps them unacknowledged. They go back
    to the queue when the channel or the connection closes.

    The server sends as many messages as the prefetch allows, wanted or not. A high prefetch would
    keep messages from other consumers, and a slow topology would hold some longer than the server's
    ``consumer_timeout``. So the first subscription has a small prefetch (``basic.qos``, never
    global). Each :meth:`want_more` doubles the sum by a further subscription on the same channel.

    Args:
        broker: the server.
        queue: the queue's name; somebody else has declared the queue.
        prefetch: the most unacknowledged messages.
        consumer: a name that shows in RabbitMQ's list of clients.
    """

    lease_secs: float | None = None
    leases_survive = False

    def __init__(self, broker: Broker, queue: str, *, prefetch: int, consumer: str) -> None:
        self._broker = broker
        self._queue = queue
        self._prefetch = min(prefetch, _MOST_PREFETCHED)
        self._consumer = consumer
        self._place = broker.place
        self._connection: Any = None
        self._channel: Any = None
        self._number = 0
        self._subscriptions: list[str] = []
        self._granted = 0
        self._wants_more = False
        self._cancelled = False
        self._arrived: list[tuple[Any, Any, bytes]] = []
        self._unacked: dict[int, tuple[str, Identity]] = {}
        self._refused: set[Hashable] = set()
        self._identities = Identities()

    @property
    def name(self) -> str:
        """The queue, with the server's hosts."""
        return f"the queue {self._queue!r} of RabbitMQ at {self._place}"

    def connect(self) -> None:
        """Connect, look whether the queue is there, and subscribe."""
        self.close()
        try:
            with translated(self._place):
                self._connection = pika.BlockingConnection(self._broker.parameters(self._consumer))
                self._channel = self._connection.channel()
                self._channel.add_on_cancel_callback(self._note_cancelled)
                self._channel.queue_declare(self._queue, passive=True)
                self._subscribe(min(_FIRST_PREFETCH, self._prefetch))
        except BaseException:
            self.close()
            raise
        self._number += 1

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Answer heartbeats, and return messages that the server has sent meanwhile."""
        with self._talking():
            if limit:
                self._widen(limit)
            self._connection.process_data_events(wait_secs if limit and not self._arrived else 0)
            if not limit and self._arrived:
                # A full keeper has no such message, by the prefetch: the keeper rests.
                self._unsubscribe()
        self._check()
        taken, self._arrived[:limit] = self._arrived[:limit], []
        return [self._delivery(*one) for one in taken]

    def want_more(self) -> None:
        """Note that the topology asks for a message and there is none; on any thread."""
        self._wants_more = True

    def refuse(self, message_id: Hashable) -> None:
        """Let :meth:`settle` hand a message to the queue's dead-letter exchange; on any thread."""
        self._refused.add(message_id)

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Return no lease: each lasts as long as the connection."""
        return ()

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Ack messages, many at a time where their tags follow each other."""
        tags = self._tags(leases)
        refused = [tag for tag in tags if self._message_of(tag) in self._refused]
        with self._talking():
            for tag in refused:
                self._channel.basic_reject(tag, requeue=False)
            self._refused.difference_update(map(self._message_of, refused))
            self._forget(refused)
            acked = [tag for tag in tags if tag in self._unacked]
            for tag, multiple in self._runs(acked):
                self._channel.basic_ack(tag, multiple=multiple)
            self._forget(acked)
        return ()

    def give_back(self, leases: Collection[Lease]) -> None:
        """Put messages back into the queue, with those that nobody has taken here.

        ``basic.nack`` does not count towards the delivery limit of a quorum queue; from RabbitMQ 4
        on ``basic.reject`` does.
        """
        tags = self._tags(leases)
        with self._talking():
            # No further messages first: these would come back to this consumer at once.
            self._unsubscribe()
            for tag in tags:
                self._channel.basic_nack(tag, requeue=True)
        self._forget(tags)

    def close(self) -> None:
        """Close the connection; the server puts back what is unacknowledged."""
        connection, self._connection, self._channel = self._connection, None, None
        self._subscriptions, self._granted, self._cancelled = [], 0, False
        self._arrived.clear()
        self._unacked.clear()
        self._identities.lose()
        if connection is not None and connection.is_open:
            with suppress(exceptions.AMQPError, OSError):
                connection.close()

    def __repr__(self) -> str:
        return f"RabbitQueue({self.name}, {len(self._unacked)} unacked)"

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Notice before a call that the connection cannot carry the call, and translate errors."""
        self._check()
        with translated(self._place):
            yield

    def _subscribe(self, prefetch: int) -> None:
        """Let the server hand out so many messages more."""
        self._channel.basic_qos(prefetch_count=prefetch)
        self._subscriptions.append(self._channel.basic_consume(self._queue, self._receive))
        self._granted += prefetch

    def _widen(self, limit: int) -> None:
        """Subscribe again after a pause, or once more if the topology has used up the prefetch."""
        in_hand = len(self._unacked) + len(self._arrived)
        if not self._subscriptions:
            self._subscribe(min(_FIRST_PREFETCH, limit))
        elif self._wants_more and in_hand >= self._granted:
            more = min(self._granted, self._prefetch - in_hand)
            if more > 0:
                self._subscribe(more)
            self._wants_more = False

    def _unsubscribe(self) -> None:
        """End the subscriptions, and put back messages that nobody has taken here."""
        subscriptions, self._subscriptions, self._granted = self._subscriptions, [], 0
        for subscription in subscriptions:
            self._channel.basic_cancel(subscription)
        arrived, self._arrived = self._arrived, []
        for method, _, _ in arrived:
            self._channel.basic_nack(method.delivery_tag, requeue=True)

    # --- what the server sends -------------------------------------------------------------------

    def _receive(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((method, properties, body))

    def _note_cancelled(self, frame: object) -> None:
        self._cancelled = True

    def _check(self) -> None:
        """Notice an end of the subscription: pika raises no error for it."""
        if self._cancelled:
            raise QueueLostError(f"RabbitMQ has ended the subscription to {self.name}")
        if self._channel is None or not self._connection.is_open:
            raise QueueLostError(f"the connection of {self.name} is closed")
        if not self._channel.is_open:
            raise QueueLostError(
                f"RabbitMQ has closed the channel of {self.name}, perhaps since a message was "
                f"unacknowledged for longer than its consumer_timeout: its log has the reason"
            )

    def _delivery(self, method: Any, properties: Any, body: bytes) -> Delivery:
        given = _set(properties)
        content = _content(method, given, body)
        identity = self._identities.name(content, redelivered=method.redelivered)
        message_id = _message_id(properties.message_id, identity)
        self._unacked[method.delivery_tag] = message_id, identity
        counted = (properties.headers or {}).get("x-delivery-count")
        return Delivery(
            message_id=message_id,
            lease=_Tag(self._number, method.delivery_tag),
            body=body,
            # A classic queue counts no further than to the first delivery.
            deliveries=counted + 1 if isinstance(counted, int) else int(not method.redelivered),
            attributes={
                "exchange": method.exchange,
                "routing_key": method.routing_key,
                "redelivered": method.redelivered,
                **given,
            },
        )

    # --- tags ------------------------------------------------------------------------------------

    def _tags(self, leases: Collection[Lease]) -> list[int]:
        """Return the tags of this connection, in order; a tag of an earlier one means nothing."""
        mine = [cast(_Tag, lease) for lease in leases]
        return sorted(one.tag for one in mine if one.connection == self._number)

    def _runs(self, tags: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """Yield the tags to ack: the last of all that come first, then each of the others."""
        done = set(tags)
        # In the order of the tags: a tag that is not done stands before all that are not first.
        left = next((tag for tag in self._unacked if tag not in done), None)
        first = [tag for tag in tags if left is None or tag < left]
        if first:
            yield first[-1], True
        yield from ((tag, False) for tag in tags[len(first) :])

    def _forget(self, tags: Sequence[int]) -> None:
        self._identities.free([self._unacked.pop(tag)[1] for tag in tags if tag in self._unacked])

    def _message_of(self, tag: int) -> str | None:
        return self._unacked[tag][0] if tag in self._unacked else None


def _content(method: Any, given: Mapping[str, Any], body: bytes) -> str:
    """Return a digest of the things that stay the same from delivery to delivery."""
    rest = (method.exchange, method.routing_key, sorted(given.items()))
    return blake2b(repr(rest).encode() + b"\0" + body, digest_size=12).hexdigest()


def _set(properties: Any) -> Mapping[str, Any]:
    """Return the properties that the publisher has set."""
    found = {name: value for name, value in vars(properties).items() if value is not None}
    if "headers" in found:
        kept = {name: value for name, value in found["headers"].items() if name not in _COUNTS}
        found["headers"] = kept
    return found


def _message_id(given: str | None, identity: Identity) -> str:
    """Return the message's name: the publisher's, if there is one, with its content and number."""
    content, number = identity
    name = f"{given}#{content}" if given else content
    return name if number == 1 else f"{name}/{number}"
