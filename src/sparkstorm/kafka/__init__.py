"""Apache Kafka: a spout, a bolt, a sink of transactions, and a topic for dead letters.

It needs an extra: ``pip install 'sparkstorm[kafka]'``.

What can be wrong is pure: the partition manager (in :mod:`offsets`) and :mod:`assignment`.
:mod:`client` alone knows the client library.
"""

from sparkstorm.kafka.bolt import KafkaBolt
from sparkstorm.kafka.formats import RecordInfo, WithRecord
from sparkstorm.kafka.letters import DeadLetterTopic
from sparkstorm.kafka.offsets.zookeeper import ZooKeeperProgress
from sparkstorm.kafka.sink import KafkaSink
from sparkstorm.kafka.spout import KafkaSpout

__all__ = [
    "DeadLetterTopic",
    "KafkaBolt",
    "KafkaSink",
    "KafkaSpout",
    "RecordInfo",
    "WithRecord",
    "ZooKeeperProgress",
]
