"""Making of clients, and the reasons for their failures.

librdkafka retries by itself, mostly without a word. Its error callback gets the reasons: a refused
password, for example, is told nowhere else. :attr:`Troubles.last` keeps the last reason, for the
text of errors.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, final

from confluent_kafka import Consumer, KafkaError, KafkaException

from sparkstorm.errors import ConfigError, SpoutConnectionError
from sparkstorm.kafka.cluster import Cluster

__all__ = ["UNKNOWN_TOPIC", "RefusedError", "Troubles", "make"]

_REFUSALS = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's own errors begin with _
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
UNKNOWN_TOPIC = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)


_VALUES = re.compile(r'(?<=Invalid value) ".*"(?= for)|(?<=beginning at): .*', re.DOTALL)
"""librdkafka's quotes of unreadable text. The text may be a password in the wrong place."""


class RefusedError(SpoutConnectionError):
    """The cluster refuses this user, or the operation: waiting is of no use."""


@final
class Troubles:
    """The last error that a client's error callback got, and its words."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._refused = False
        self.last = ""
        self.serve: Callable[[], object] = lambda: None
        """Lets the client call its callbacks."""

    def note(self, error: KafkaError) -> None:
        """Keep an error; ``all brokers down`` tells less than the error before."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.last:  # noqa: SLF001
            self.last = _without_values(error.str())
            self._refused = error.code() in _REFUSALS

    def error(self, what: str, cause: object = "") -> SpoutConnectionError:
        """Return the error of a failed request."""
        text, refused = self.told(what, cause)
        return (RefusedError if refused else SpoutConnectionError)(text)

    def told(self, what: str, cause: object = "") -> tuple[str, bool]:
        """Put a failed request into words, and tell whether the cluster refused it for good."""
        with suppress(KafkaException):  # what is fatal is raised there once more
            self.serve()
        said = cause.args[0] if isinstance(cause, KafkaException) else cause
        text = _without_values(said.str() if isinstance(said, KafkaError) else str(said))
        reason = "; ".join(dict.fromkeys(filter(None, (text, self.last)))) or "no answer"
        refused = self._refused or (isinstance(said, KafkaError) and said.code() in _REFUSALS)
        self.last, self._refused = "", False
        return f"cannot {what} at {self._cluster.bootstrap_servers}: {reason}", refused


def make(
    kind: Callable[[dict[str, Any]], Any], cluster: Cluster, **more: Any
) -> tuple[Any, Troubles]:
    """Make a client; return the client and its troubles."""
    troubles = Troubles(cluster)
    properties = {name.replace("_", "."): value for name, value in more.items()}
    try:
        client = kind({**cluster.properties(), **properties, "error_cb": troubles.note})
    except (KafkaException, ValueError, TypeError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        why = _without_values(why)
        raise ConfigError(f"the Kafka client refuses its properties: {why}") from None
    if kind is not Consumer:  # whose poll would take records
        troubles.serve = lambda: client.poll(0)
    return client, troubles


def _without_values(text: str) -> str:
    """Return the client's text without the quoted values of properties."""
    return _VALUES.sub(" (not shown)", text)
