"""The RabbitMQ spout: one message per message of a queue."""

from collections.abc import Hashable, Sequence
from typing import Any, final

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.queues.decoding import Decoder
from sparkstorm.queues.queue import Queue
from sparkstorm.queues.rabbitmq.broker import Broker, Urls
from sparkstorm.queues.rabbitmq.queue import RabbitQueue
from sparkstorm.queues.spout import QueueSpout

__all__ = ["RabbitMQSpout"]


@final
class RabbitMQSpout(QueueSpout):
    """Emits the messages of a RabbitMQ queue; the queue must have been declared.

    A message stays unacknowledged on the server until its ack. A failed message waits here for its
    retry, so no retry counts towards the delivery limit of a quorum queue. A shutdown puts messages
    back by ``basic.nack``, which RabbitMQ 4 does not count either.

    The attributes of :class:`~sparkstorm.queues.decoding.WithDelivery` are ``exchange``,
    ``routing_key``, ``redelivered``, and the properties that the publisher has set, such as
    ``headers``, by pika's names. ``deliveries`` counts the deliveries of a quorum queue; a classic
    queue shows 1 for a first delivery, and 0 for later ones.

    Args:
        queue: the queue's name.
        url: ``amqp://user:password@host:port/vhost``, or ``amqps://`` for TLS; several for the
            nodes of a cluster; or a function that returns them, called in the driver. Never shown
            with its password.
        fields: the declared stream; a single name gets the format's type.
        decode: ``"string"``, ``"bytes"``, ``"json"``, a function of the body's bytes, or
            :class:`~sparkstorm.queues.decoding.WithDelivery`. A tuple as result is a row of
            values.
        max_pending: the most unacknowledged messages of a task, at most 65,535. Unset:
            ``max_spout_pending``, else 30,000. The prefetch begins at 1000, and doubles while the
            topology asks for more.
        ends_after_idle_secs: the spout ends once the queue has handed out nothing for so long.
            Unset: it never ends.
        broker_letters: hand dead letters to the queue's dead-letter exchange as well: they are
            rejected instead of acked. A queue without such an exchange drops them.
        heartbeat_secs: a connection that is silent for two to three times as long counts as lost.
        timeout_secs: how long connecting may take.

    Raises:
        ConfigError: an argument does not fit.
    """

    default_pending = 30_000

    def __init__(
        self,
        queue: str,
        *,
        url: Urls,
        fields: str = "body",
        decode: Decoder = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
        broker_letters: bool = False,
        heartbeat_secs: int = 5,
        timeout_secs: float = 5.0,
    ) -> None:
        super().__init__(
            fields=fields,
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )
        if not queue:
            raise ConfigError("queue is empty: name the queue to read")
        self._queue = queue
        self._broker = Broker(url=url, heartbeat_secs=heartbeat_secs, timeout_secs=timeout_secs)
        self._broker_letters = broker_letters

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own consumer."""
        self._consumer = RabbitQueue(
            self._broker,
            self._queue,
            prefetch=self.limit,
            consumer=f"{context.topology} {context.component}/{context.task_index}",
        )
        return self._consumer

    def next_message(self) -> tuple[Hashable, Sequence[Any]] | None:
        """Return the next message; if there is none, let the server hand out more at once."""
        found = super().next_message()
        if found is None:
            self._consumer.want_more()
        return found

    def note_given_up(self, msg_id: Hashable) -> None:
        """Let the broker's dead-letter exchange have the message, if the user wishes."""
        if self._broker_letters:
            self._consumer.refuse(msg_id)

    def __repr__(self) -> str:
        return f"RabbitMQSpout({self._queue!r}, {self._broker!r})"
