"""A producer that reports the result of each record."""

import threading
from collections.abc import Callable
from typing import Any, final

from confluent_kafka import KafkaError, KafkaException

from sparkstorm.kafka.client.producing import make_producer, produce
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Outgoing

__all__ = ["Sender"]

_WAIT_SECS = 0.1


@final
class Sender:
    """A producer that reports the result of each record; thread-safe.

    Args:
        cluster: the Kafka cluster.
        properties: more properties of librdkafka.
    """

    def __init__(self, cluster: Cluster, **properties: Any) -> None:
        self._cluster = cluster
        self._properties = {"enable_idempotence": True, **properties}
        self._lock = threading.Lock()
        self._producer, self._troubles = make_producer(cluster, **self._properties)

    def send(self, record: Outgoing, on_done: Callable[[str | None], None]) -> None:
        """Send a record; within :meth:`flush`, ``on_done`` gets None or the error.

        Waits if the producer's queue is full.
        """

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None and error.fatal():
                self._renew()
            on_done(None if error is None else error.str())

        while True:
            producer = self._producer
            try:
                produce(producer, record, report)
            except BufferError:
                producer.poll(_WAIT_SECS)
            except KafkaException as error:
                report(error.args[0], None)
                return
            else:
                producer.poll(0)
                return

    def flush(self, secs: float) -> int:
        """Wait for the answers to all records; return the number of records without an answer."""
        return int(self._producer.flush(secs))

    @property
    def trouble(self) -> str:
        """The last error of the connection."""
        return self._troubles.last or "no answer"

    def _renew(self) -> None:
        """Make a new producer: an idempotent producer that lost its sequence sends no more."""
        with self._lock:
            self._producer, self._troubles = make_producer(self._cluster, **self._properties)
