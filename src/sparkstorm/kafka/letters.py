"""Dead letters as records of a topic, as they are kept where Kafka is at home."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from sparkstorm.dead_letters import DeadLetter
from sparkstorm.dead_letters.values import to_json
from sparkstorm.errors import ConfigError, WorldError
from sparkstorm.kafka.client.sender import Sender
from sparkstorm.kafka.client.topics import has_topic
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Outgoing
from sparkstorm.texts.showing import visible, visible_lines
from sparkstorm.verdicts import Reason

__all__ = ["DeadLetterTopic"]

_OURS = "__sparkstorm.errors."
_CONNECT = "__connect.errors."
"""How the headers of Kafka Connect's dead letters begin; tools for these read ours, too."""


@final
class DeadLetterTopic:
    """A sink of dead letters: ``Config(dead_letter_sink=DeadLetterTopic("orders.dead", …))``.

    A message that came from Kafka is written as it was, with its key, value and headers; of
    others the value is their payload as JSON. Where it comes from and why it was given up is in
    headers that begin with ``__sparkstorm.errors.``: ``topic``, ``partition``, ``offset``,
    ``reason``, ``message``, ``component``, ``task``, ``attempts``, ``topology``, ``spout``,
    ``first.time``, ``last.time``, ``timestamp`` (the record's own, in milliseconds since 1970),
    ``id``, all as text for people, controls and such escaped. The headers of Kafka Connect's dead
    letters are there as well: ``__connect.errors.topic``, ``partition``, ``offset``,
    ``connector.name`` (the topology), ``task.id``, ``stage``, ``class.name`` (the component),
    ``exception.class.name``, ``exception.message`` and ``exception.stacktrace``.

    Headers of either kind that a record brings along are replaced: a letter that becomes a letter
    again has one set of them.

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
        if not topic:
            raise ConfigError("topic is empty: name the topic for dead letters")
        self.writes_to = (self._cluster.place(topic),)
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
            self._sender.send(_record_of(letter, self._topic), answers.append)
        self._sender.flush(self._timeout_secs + 1.0)
        faults = [answer for answer in answers if answer is not None]
        if len(answers) < len(letters) or faults:
            why = faults[0] if faults else self._sender.trouble
            raise WorldError(f"the topic {self._topic!r} did not take all dead letters: {why}")

    def check(self) -> None:
        """Make sure that the topic is there, when the topology starts.

        Raises:
            ConfigError: the cluster has no such topic.
            WorldError: the cluster does not answer.
        """
        if not has_topic(self._cluster, self._topic, self._timeout_secs):
            raise ConfigError(
                f"there is no topic {self._topic!r} for the dead letters: create it, or mend its "
                f"name"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sender": None}

    def __repr__(self) -> str:
        return f"DeadLetterTopic({self._topic!r}, {self._cluster!r})"


def _record_of(letter: DeadLetter, topic: str) -> Outgoing:
    """Return the record of a letter."""
    source = dict(letter.source or {})
    brought = [(str(name), value) for name, value in source.pop("headers", ())]
    headers = tuple(pair for pair in brought if not pair[0].startswith((_OURS, _CONNECT)))
    headers += tuple(_told(_OURS, _origin(letter, source)))
    headers += tuple(_told(_CONNECT, _as_connect(letter, source)))
    if "topic_id" in source:  # of a KafkaSpout
        return topic, source.get("value"), source.get("key"), headers, None, None
    value = None if letter.payload is None else json.dumps(to_json(letter.payload)).encode()
    key = str(letter.msg_id).encode(errors="backslashreplace")
    return topic, value, key, headers, None, None


def _told(prefix: str, texts: Mapping[str, object]) -> Iterator[tuple[str, bytes]]:
    for name, text in texts.items():
        show = visible_lines if name == "exception.stacktrace" else visible
        yield prefix + name, show(str(text)).encode()


def _origin(letter: DeadLetter, source: Mapping[str, Any]) -> dict[str, object]:
    failure = letter.failure
    found: dict[str, object] = {
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
        **_place(source),
    }
    if source.get("millis") is not None:
        found["timestamp"] = source["millis"]
    return found


def _as_connect(letter: DeadLetter, source: Mapping[str, Any]) -> dict[str, object]:
    """Return a letter in the words of Kafka Connect."""
    failure = letter.failure
    kind, _, rest = failure.message.partition(": ")
    raised = failure.reason is Reason.ERROR and kind.replace(".", "").isidentifier()
    return {
        **_place(source),
        "connector.name": letter.topology,
        "task.id": failure.task,
        "stage": _stage(letter),
        "class.name": failure.component,
        "exception.class.name": kind if raised else f"sparkstorm.{failure.reason.value}",
        "exception.message": rest if raised else failure.message,
        "exception.stacktrace": failure.traceback,
    }


def _place(source: Mapping[str, Any]) -> dict[str, object]:
    """Return topic, partition and offset of a record; nothing for messages of other spouts."""
    if "topic_id" not in source:
        return {}
    offset = source.get("offset", source["start"] + source["position"])
    return {"topic": source["topic"], "partition": source["partition"], "offset": offset}


def _stage(letter: DeadLetter) -> str:
    """Return the name that Connect has for the step that failed."""
    if letter.failure.reason is Reason.EXPIRED:
        return "KAFKA_CONSUME"
    if letter.failure.component not in ("", letter.spout):
        return "TASK_PUT"
    return "KEY_CONVERTER" if "its key" in letter.failure.message else "VALUE_CONVERTER"


def _moment(secs: float) -> str:
    return datetime.datetime.fromtimestamp(secs, datetime.UTC).isoformat(timespec="milliseconds")
