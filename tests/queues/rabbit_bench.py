"""A queue of RabbitMQ for the tests of all queues."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pika

from sparkstorm.queues.rabbitmq import RabbitMQSpout
from sparkstorm.queues.rabbitmq.broker import Broker
from sparkstorm.queues.rabbitmq.link import Message
from sparkstorm.queues.rabbitmq.publisher import Publisher
from sparkstorm.testing import PATIENCE_SECS
from sparkstorm.testing.queues import QueueBench
from sparkstorm.testing.servers import RabbitServer

_NAMES = (f"queue-{number}" for number in itertools.count(1))


class RabbitBench(QueueBench):
    """A queue of its own on a shared server."""

    ordered = True

    def __init__(self, server: RabbitServer, arguments: Mapping[str, Any] | None = None) -> None:
        self.server = server
        self.queue = next(_NAMES)
        with self.channel() as channel:
            channel.queue_declare(self.queue, durable=True, arguments=dict(arguments or {}))

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel of another client."""
        with pika.BlockingConnection(pika.URLParameters(self.server.url)) as connection:
            yield connection.channel()

    def spout(
        self, *, decode: Any = "string", max_pending: int | None = None, **options: Any
    ) -> RabbitMQSpout:
        return RabbitMQSpout(
            self.queue,
            url=self.server.url,
            decode=decode,
            max_pending=max_pending,
            heartbeat_secs=1,
            timeout_secs=2.0,
            **options,
        )

    def send(self, bodies: Sequence[bytes], **properties: Any) -> None:
        publisher = Publisher(Broker(url=self.server.url), "test", mandatory=True)
        kept = {"delivery_mode": 2, **properties}
        messages = [Message.of("", self.queue, body, kept) for body in bodies]
        refused = [one for one in publisher.publish(messages, PATIENCE_SECS) if one]
        publisher.close()
        assert not refused, refused[0]

    def counts(self) -> tuple[int, int]:
        return self.server.queue_counts()[self.queue]

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        self.server.freeze()

    def thaw(self) -> None:
        self.server.thaw()
