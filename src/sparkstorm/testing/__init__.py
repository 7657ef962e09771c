"""Tools for testing topologies: without Spark, without real time, in this process."""

from sparkstorm.local.runner import LocalRunner
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.harness import Emitted, complete_topology
from sparkstorm.testing.servers import KafkaServer, ZooKeeperServer
from sparkstorm.testing.spouts import FeederSpout, FixedSpout

__all__ = [
    "Emitted",
    "FeederSpout",
    "FixedSpout",
    "KafkaServer",
    "LocalRunner",
    "ManualClock",
    "ZooKeeperServer",
    "complete_topology",
]
