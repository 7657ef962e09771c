"""Apache Kafka: a spout, a bolt, a sink of transactions, and a topic for dead letters.

It needs an extra: ``pip install 'sparkstorm[kafka]'``.

What can be wrong is pure: the partition manager (:mod:`progress`, on :mod:`ranges` and
:mod:`ack_map`) and :mod:`assignment`. :mod:`client` alone knows the client library.
"""

from sparkstorm.kafka.bolt import KafkaBolt
from sparkstorm.kafka.formats import RecordInfo, WithRecord
from sparkstorm.kafka.letters import DeadLetterTopic
from sparkstorm.kafka.sink import KafkaSink
from sparkstorm.kafka.spout import KafkaSpout
from sparkstorm.kafka.zookeeper import ZooKeeperProgress

__all__ = [
    "DeadLetterTopic",
    "KafkaBolt",
    "KafkaSink",
    "KafkaSpout",
    "RecordInfo",
    "WithRecord",
    "ZooKeeperProgress",
]
