"""A link: one connection of a publisher, with one channel in confirm mode."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

import pika
from pika import exceptions

from sparkstorm.queues.queue import QueueLostError
from sparkstorm.queues.rabbitmq.broker import Broker, error_of

__all__ = ["NO_ANSWER", "Link", "Message"]

NO_ANSWER = "no confirm from RabbitMQ"
"""The answer to a message that has none."""

_NACKED = "RabbitMQ did not take it (basic.nack): its queue is full, or has lost its node"
_CLOSE_SECS = 1.0
_LAST_STEPS_SECS = 0.05
_LONGEST_KEY = 255


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to publish; ``properties`` are pika's own."""

    exchange: str
    routing_key: str
    body: bytes
    properties: Any

    @classmethod
    def of(
        cls, exchange: str, routing_key: str, body: bytes, properties: Mapping[str, Any]
    ) -> "Message":
        """Return a message that pika can send.

        Raises:
            TypeError: a property is unknown, or has a wrong type.
            ValueError: the routing key, or a property, is too long.
        """
        if not isinstance(routing_key, str):
            raise TypeError(f"{routing_key!r} is no routing key")
        if len(routing_key.encode()) > _LONGEST_KEY:
            raise ValueError(f"a routing key has at most {_LONGEST_KEY} bytes: {routing_key!r}")
        made = pika.BasicProperties(**properties)
        try:
            made.encode()
        except (exceptions.AMQPError, AssertionError) as error:
            raise ValueError(f"AMQP has no such properties: {properties!r}") from error
        return cls(exchange=exchange, routing_key=routing_key, body=body, properties=made)


@final
class Link:
    """Publishes messages and collects the answers; everything runs on the caller's thread.

    Nobody reads the connection between two calls, so it has no heartbeats. A link that is lost
    meanwhile shows it at the next call.

    Args:
        broker: the server; its nodes are tried in turn.
        name: shows in RabbitMQ's list of clients.
        deadline: the time, of the monotonic clock, until which to wait for the connection.
        mandatory: whether the server returns a message that reaches no queue.

    Raises:
        QueueLostError: no node answers.
        EnvironmentFault: the server refuses the client.
    """

    def __init__(self, broker: Broker, name: str, deadline: float, *, mandatory: bool) -> None:
        self._place = broker.place
        self._mandatory = mandatory
        self._lost: BaseException | None = None
        self._ended = False
        self._ready = False
        self._answers: dict[int, str | None] = {}
        self._waiting: dict[int, Message] = {}
        self._published = 0
        self._returned = 0
        for parameters in broker.parameters(name):
            parameters.heartbeat = 0
            self._connect(parameters, deadline)
            if self._ready:
                return
            self.close()
        raise error_of(self._lost, self._place)

    @property
    def lost(self) -> str:
        """The reason why the connection or the channel is gone; empty if it is there."""
        return "" if self._lost is None else str(error_of(self._lost, self._place))

    def publish(self, messages: Sequence[Message], deadline: float) -> list[str | None]:
        """Publish, and wait for the answers, at most until a time.

        Returns:
            For each message None if it is confirmed, else the reason, or :data:`NO_ANSWER`.
        """
        first = self._published + 1
        with suppress(exceptions.AMQPError):  # the callbacks hear of it, too
            for message in messages:
                self._published += 1
                self._waiting[self._published] = message
                self._channel.basic_publish(
                    message.exchange,
                    message.routing_key,
                    message.body,
                    message.properties,
                    mandatory=self._mandatory,
                )
        self._run(deadline)
        if self._waiting:
            self._waiting.clear()
            self.close()  # later answers would be of no use
        tags = range(first, first + len(messages))
        return [self._answers.pop(tag, NO_ANSWER) for tag in tags]

    def close(self) -> None:
        """Close the connection; the server has a second to agree."""
        if self._lost is None:
            self._lost = QueueLostError("it did not answer in time")
        connection = self._connection
        with suppress(exceptions.AMQPError, OSError):
            if not (connection.is_closing or connection.is_closed):
                connection.close()
                self._spin(_CLOSE_SECS)
        if not self._ended:
            self._ended = True
            self._spin(_LAST_STEPS_SECS)  # pika closes its socket after it says that it is lost
            connection.ioloop.close()

    # --- the loop --------------------------------------------------------------------------------

    def _run(self, deadline: float) -> None:
        """Serve the connection until all messages are answered, the link is lost, or time is up."""
        loop = self._connection.ioloop
        timer = loop.call_later(max(0.0, deadline - time.monotonic()), loop.stop)
        while self._lost is None and not self._done and time.monotonic() < deadline:
            loop.start()
        loop.remove_timeout(timer)

    def _spin(self, secs: float) -> None:
        loop = self._connection.ioloop
        loop.call_later(secs, loop.stop)
        loop.start()

    @property
    def _done(self) -> bool:
        return self._ready and not self._waiting

    def _stop_if_done(self) -> None:
        if self._done or self._lost is not None:
            self._connection.ioloop.stop()

    # --- opening ---------------------------------------------------------------------------------

    def _connect(self, parameters: Any, deadline: float) -> None:
        self._lost, self._ended = None, False
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(
                on_open_callback=self._opened_channel
            ),
            on_open_error_callback=self._note_lost,
            on_close_callback=self._note_lost,
        )
        self._run(deadline)

    def _opened_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._note_lost)
        channel.add_on_return_callback(self._note_returned)
        channel.confirm_delivery(self._note_answer, callback=self._note_ready)

    def _note_ready(self, frame: object) -> None:
        self._ready = True
        self._stop_if_done()

    def _note_lost(self, who: object, error: BaseException) -> None:
        self._lost = self._lost or error
        self._stop_if_done()

    # --- answers ---------------------------------------------------------------------------------

    def _note_answer(self, frame: Any) -> None:
        """Take a confirm, of one message or of all up to one."""
        method = frame.method
        first = self._first_waiting if method.multiple else method.delivery_tag
        tags = range(first, method.delivery_tag + 1)
        for tag in tags:
            if self._waiting.pop(tag, None) is not None:
                self._answers.setdefault(tag, _NACKED if "Nack" in method.NAME else None)
        self._stop_if_done()

    def _note_returned(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        """Find the message that no queue takes: the server returns messages in their order.

        Its confirm follows.
        """
        found = method.routing_key, body
        for tag in range(max(self._returned + 1, self._first_waiting), self._published + 1):
            message = self._waiting.get(tag)
            if message is not None and found == (message.routing_key, message.body):
                self._returned = tag
                self._answers[tag] = (
                    f"no queue takes it: exchange {method.exchange!r} has no route for the "
                    f"routing key {method.routing_key!r}"
                )
                return

    @property
    def _first_waiting(self) -> int:
        return next(iter(self._waiting), self._published + 1)
