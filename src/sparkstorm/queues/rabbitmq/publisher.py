"""A publisher: sends many messages at a time, and waits until the broker has confirmed each."""

import os
import threading
import time
from collections.abc import Sequence
from typing import final

from sparkstorm.queues.rabbitmq.broker import Broker
from sparkstorm.queues.rabbitmq.link import NO_ANSWER, Link, Message

__all__ = ["Publisher"]


@final
class Publisher:
    """Publishes by one connection, which is made when it is needed, and again if it is lost.

    Args:
        broker: the server.
        name: shows in RabbitMQ's list of clients.
        mandatory: whether a message that reaches no queue is refused.
    """

    def __init__(self, broker: Broker, name: str, *, mandatory: bool) -> None:
        self._broker = broker
        self._name = name
        self._mandatory = mandatory
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._process = os.getpid()

    def publish(self, messages: Sequence[Message], secs: float) -> list[str | None]:
        """Publish, and wait for the confirms.

        A lost connection is replaced once: it may have been gone for long, since nobody listens
        between two calls. Messages without an answer are then published again.

        Returns:
            For each message None if it is confirmed, else the reason.

        Raises:
            QueueLostError: there is no connection within the time.
            EnvironmentFault: the server refuses the client.
        """
        deadline = time.monotonic() + secs
        with self._lock:
            fresh = self._is_away
            link = self._open(deadline)
            answers = link.publish(messages, deadline)
            if not fresh and link.lost:
                left = [number for number, answer in enumerate(answers) if answer == NO_ANSWER]
                link = self._open(deadline)
                again = link.publish([messages[number] for number in left], deadline)
                for number, answer in zip(left, again, strict=True):
                    answers[number] = answer
            return [f"{one}: {link.lost}" if one == NO_ANSWER else one for one in answers]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._link is not None:
                self._link.close()
            self._link = None

    @property
    def _is_away(self) -> bool:
        # A fork shares its parent's socket, and must not use it.
        return self._link is None or bool(self._link.lost) or self._process != os.getpid()

    def _open(self, deadline: float) -> Link:
        if self._link is None or self._is_away:
            if self._link is not None and self._process == os.getpid():
                self._link.close()
            self._link, self._process = None, os.getpid()
            self._link = Link(self._broker, self._name, deadline, mandatory=self._mandatory)
        return self._link
