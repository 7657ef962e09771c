"""How producers are made and take records: alike for plain ones and for transactions."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Producer

from sparkstorm.kafka.client.troubles import Troubles, make
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Outgoing

__all__ = ["make_producer", "produce"]

_PARTITIONER = "murmur2_random"
"""Java's hash: a key goes to the partition that Java's own producer chooses.

librdkafka's default is another hash, which would part keys from those of topics to be joined.
"""


def make_producer(cluster: Cluster, **more: Any) -> tuple[Any, Troubles]:
    """Make a producer that partitions as Java does, unless the cluster's properties say otherwise.

    Raises:
        ConfigError: the client refuses its properties.
    """
    if "partitioner" not in cluster.client:
        more["partitioner"] = _PARTITIONER
    return make(Producer, cluster, **more)


def produce(
    producer: Any, record: Outgoing, on_delivery: Callable[[KafkaError | None, Any], None]
) -> None:
    """Hand a record to a producer.

    Raises:
        BufferError: the producer's queue is full.
        KafkaException: the producer refuses the record.
    """
    topic, value, key, headers, partition, millis = record
    # the client has no None for these two: a value of its own means "not given"
    more: dict[str, int] = {}
    if partition is not None:
        more["partition"] = partition
    if millis is not None:
        more["timestamp"] = millis
    producer.produce(
        topic, value, key, headers=list(headers) or None, on_delivery=on_delivery, **more
    )
