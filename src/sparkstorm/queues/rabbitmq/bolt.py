"""The RabbitMQ bolt: one message per tuple, acked when the broker has confirmed the message."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

from sparkstorm.components.bolt import Bolt
from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import EnvironmentFault
from sparkstorm.formats import Format, Writer
from sparkstorm.queues.outgoing import BodyMaker, Selector
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.queues.rabbitmq.broker import Broker, Urls
from sparkstorm.queues.rabbitmq.link import Message
from sparkstorm.queues.rabbitmq.publisher import Publisher
from sparkstorm.tuples import Tuple

__all__ = ["RabbitMQBolt"]

RoutingKey: TypeAlias = str | Callable[[Tuple], str]
"""A routing key, or a function of the tuple that returns the key."""

_MOST_WAITING = 1_000
"""So many messages are published at a time."""


@final
class RabbitMQBolt(Bolt):
    """Publishes a message for each tuple; a tuple is acked by the broker's confirm.

    A message that the broker does not take, or that reaches no queue, fails its tuple with the
    broker's reason; so does a message without a confirm in time. So a message may be published
    twice (its tuple is tried again), and is never lost.

    Args:
        routing_key: a text, or a function of the tuple. With the default exchange the key is the
            name of a queue.
        url: ``amqp://user:password@host:port/vhost``, or ``amqps://`` for TLS; several for the
            nodes of a cluster; or a function that returns them, called on the executors. Never
            shown with its password.
        exchange: the exchange's name; the default exchange has the name ``""``.
        body: the field that is written, or a function of the tuple.
        body_format: how the body is written: ``"bytes"``, ``"string"``, ``"json"``, or a function
            that returns bytes.
        properties: a function of the tuple that returns AMQP properties by pika's names, such as
            ``{"message_id": …, "headers": {…}}``.
        persistent: whether durable queues keep the messages over a restart of the server.
        mandatory: whether a message that reaches no queue fails its tuple.
        most_bytes: a larger body fails its tuple. A broker closes the connection for a body above
            its own limit (16 MiB in RabbitMQ 4), and all others on the way fail as well.
        timeout_secs: how long the broker may take for the messages of a batch.

    Raises:
        ConfigError: an argument does not fit.
    """

    transient = ("_waiting",)

    def __init__(
        self,
        routing_key: RoutingKey,
        *,
        url: Urls,
        exchange: str = "",
        body: Selector = "body",
        body_format: Format | Writer = "string",
        properties: Callable[[Tuple], Mapping[str, Any]] | None = None,
        persistent: bool = True,
        mandatory: bool = True,
        most_bytes: int = 16 * 2**20,
        timeout_secs: float = 30.0,
    ) -> None:
        self._broker = Broker(url=url, timeout_secs=min(timeout_secs, 10.0))
        self._routing_key = routing_key
        self._exchange = exchange
        self._bodies = BodyMaker(body, body_format, most_bytes)
        self._properties = properties
        self._persistent = persistent
        self._mandatory = mandatory
        self._timeout_secs = timeout_secs

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Share one connection among the tasks in this process."""
        self._publisher = context.shared(
            f"rabbitmq publisher {self._broker.identity} {self._mandatory}",
            lambda: Publisher(self._broker, context.topology, mandatory=self._mandatory),
        )
        self._waiting: list[tuple[Tuple, Message]] = []

    def execute(self, tup: Tuple) -> None:
        """Keep a message until there are enough for a round trip."""
        if tup.is_tick:
            self.collector.ack(tup)
            return
        self._waiting.append((tup, self._message(tup)))
        if len(self._waiting) >= _MOST_WAITING:
            self._publish()

    def finish_batch(self) -> None:
        """Publish the rest."""
        self._publish()

    def _publish(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            answers = self._publisher.publish([one for _, one in waiting], self._timeout_secs)
        except (QueueLostError, EnvironmentFault) as error:
            answers = [str(error)] * len(waiting)
        for (tup, _), answer in zip(waiting, answers, strict=True):
            if answer is None:
                self.collector.ack(tup)
            else:
                self.collector.fail(tup, answer)

    def _message(self, tup: Tuple) -> Message:
        """Return the message of a tuple; an error fails the tuple alone."""
        body = self._bodies.body(tup)
        key = self._routing_key(tup) if callable(self._routing_key) else self._routing_key
        properties = {} if self._properties is None else dict(self._properties(tup))
        properties.setdefault("delivery_mode", 2 if self._persistent else 1)
        return Message.of(self._exchange, key, body, properties)

    def __repr__(self) -> str:
        return f"RabbitMQBolt({self._exchange!r}, {self._routing_key!r}, {self._broker!r})"
