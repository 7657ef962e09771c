"""Real servers for tests, on loopback: a Kafka broker, ZooKeeper, PostgreSQL.

Each server has a folder and free ports of its own, and stops at the end of its ``with`` block.
Kafka's jars are fetched once (:mod:`jars`); PostgreSQL must be installed.
"""

from sparkstorm.testing.servers.kafka import KafkaServer
from sparkstorm.testing.servers.postgres import PostgresServer
from sparkstorm.testing.servers.process import ServerProcess
from sparkstorm.testing.servers.zookeeper import ZooKeeperServer

__all__ = ["KafkaServer", "PostgresServer", "ServerProcess", "ZooKeeperServer"]
