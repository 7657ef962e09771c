"""Servers for tests, on loopback: Kafka, ZooKeeper, PostgreSQL and the queues' servers.

``pip install "sparkstorm[testing]"`` brings their clients, and pytest. The servers themselves need
no package: those of the JVM need Java, and the others have to be installed. If something is
missing, an ``EnvironmentFault`` names it.

Each server has a folder and free ports of its own, and stops at the end of its ``with`` block.
Kafka's jars are fetched once (:mod:`jars`).
"""

from sparkstorm.testing.servers.elasticmq import ElasticMQServer
from sparkstorm.testing.servers.guardian import guarded
from sparkstorm.testing.servers.kafka import KafkaServer
from sparkstorm.testing.servers.kestrel import KestrelServer
from sparkstorm.testing.servers.postgres import PostgresServer
from sparkstorm.testing.servers.process import ServerProcess
from sparkstorm.testing.servers.rabbitmq import RabbitServer
from sparkstorm.testing.servers.redis import RedisServer
from sparkstorm.testing.servers.zookeeper import ZooKeeperServer

__all__ = [
    "ElasticMQServer",
    "KafkaServer",
    "KestrelServer",
    "PostgresServer",
    "RabbitServer",
    "RedisServer",
    "ServerProcess",
    "ZooKeeperServer",
    "guarded",
]
