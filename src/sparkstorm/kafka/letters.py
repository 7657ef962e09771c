"""Dead letters as records of a topic, as they are kept where Kafka is at home."""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, final

from sparkstorm.dead_letters import DeadLetter
from sparkstorm.dead_letters.values import to_json
from sparkstorm.errors import WorldError
from sparkstorm.kafka.client.sender import Sender
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.texts.showing import visible

__all__ = ["DeadLetterTopic"]

_PREFIX = "__sparkstorm.errors."


@final
class DeadLetterTopic:
    """A sink of dead letters: ``Config(dead_letter_sink=DeadLetterTopic("orders.dead", …))``.

    A message that came from Kafka is written as it was, with its key, value and headers; of
    others the value is their payload as JSON. Where it comes from and why it was given up is in
    headers that begin with ``__sparkstorm.errors.``: ``topic``, ``partition``, ``offset``,
    ``reason``, ``message``, ``component``, ``task``, ``attempts``, ``topology``, ``spout``,
    ``first.time``, ``last.time``, ``id``, all as text for people, controls and such escaped.

    If the brokers do not take them all, the letters go to the files instead.

    Args:
        topic: the topic to write to.
        bootstrap_servers: ``host:port``, several with commas between.
        timeout_secs: how long the brokers may take; planning waits meanwhile.
        client: more properties of librdkafka, for security above all. Never logged.
    """

    def __init__(
        self,
        topic: str,
        *,
        bootstrap_servers: str,
        timeout_secs: float = 10.0,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = topic
        self._cluster = Cluster(bootstrap_servers=bootstrap_servers, client=client or {})
        self._timeout_secs = timeout_secs
        self._sender: Sender | None = None

    def __call__(self, letters: Sequence[DeadLetter]) -> None:
        """Write letters.

        Raises:
            WorldError: not all of them were taken.
        """
        if self._sender is None:
            millis = int(self._timeout_secs * 1000)
            self._sender = Sender(self._cluster, delivery_timeout_ms=millis)
        answers: list[str | None] = []
        for letter in letters:
            key, value, headers = _record_of(letter)
            self._sender.send(self._topic, value, key, headers, answers.append)
        self._sender.flush(self._timeout_secs + 1.0)
        faults = [answer for answer in answers if answer is not None]
        if len(answers) < len(letters) or faults:
            why = faults[0] if faults else self._sender.trouble
            raise WorldError(f"the topic {self._topic!r} did not take all dead letters: {why}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sender": None}

    def __repr__(self) -> str:
        return f"DeadLetterTopic({self._topic!r}, {self._cluster!r})"


def _record_of(
    letter: DeadLetter,
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    """Key, value and headers."""
    source = dict(letter.source or {})
    headers = [(str(name), value) for name, value in source.pop("headers", ())]
    headers += [
        (_PREFIX + name, visible(text).encode()) for name, text in _origin(letter, source).items()
    ]
    if "topic_id" in source:  # of a KafkaSpout
        return source.get("key"), source.get("value"), headers
    value = None if letter.payload is None else json.dumps(to_json(letter.payload)).encode()
    return str(letter.msg_id).encode(errors="backslashreplace"), value, headers


def _origin(letter: DeadLetter, source: Mapping[str, Any]) -> dict[str, str]:
    failure = letter.failure
    found: dict[str, Any] = {
        "id": letter.id,
        "topology": letter.topology,
        "spout": letter.spout,
        "reason": failure.reason.value,
        "component": failure.component,
        "task": failure.task,
        "message": failure.message,
        "attempts": letter.attempts,
        "first.time": _moment(letter.first_time),
        "last.time": _moment(letter.last_time),
    }
    if "topic_id" in source:
        found |= {name: source[name] for name in ("topic", "partition")}
        found["offset"] = source.get("offset", source["start"] + source["position"])
    return {name: str(value) for name, value in found.items()}


def _moment(secs: float) -> str:
    return datetime.datetime.fromtimestamp(secs, datetime.UTC).isoformat(timespec="milliseconds")
