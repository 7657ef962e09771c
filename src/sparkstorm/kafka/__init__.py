"""Apache Kafka: a spout and a bolt. Needs the extra: ``pip install 'sparkstorm[kafka]'``.

What can be wrong is pure: the partition manager (:mod:`progress`, on :mod:`ranges` and
:mod:`ack_map`) and :mod:`assignment`. :mod:`client` alone knows the client library.
"""

from sparkstorm.kafka.spout import KafkaSpout

__all__ = ["KafkaSpout"]
