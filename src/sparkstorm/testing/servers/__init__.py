"""Real servers for tests, on loopback: a Kafka broker, ZooKeeper, PostgreSQL.

Each has a folder and free ports of its own, and is stopped at the end of its ``with`` block.
Kafka's jars are fetched once (:mod:`jars`); PostgreSQL is the one that is installed.
"""

from sparkstorm.testing.servers.guardian import guarded
from sparkstorm.testing.servers.kafka import KafkaServer
from sparkstorm.testing.servers.postgres import PostgresServer
from sparkstorm.testing.servers.process import ServerProcess
from sparkstorm.testing.servers.zookeeper import ZooKeeperServer

__all__ = ["KafkaServer", "PostgresServer", "ServerProcess", "ZooKeeperServer", "guarded"]
