"""Tools for testing topologies: without Spark, without real time, in this process.

Start with :func:`complete_topology`: fixed input in, all emitted tuples out. Feed single messages
with :class:`FeederSpout` on a :class:`LocalRunner`; search for rare faults with :func:`simulate`.
"""

from sparkstorm.local.runner import LocalRunner
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.faults import Faults
from sparkstorm.testing.harness import Emitted, complete_topology
from sparkstorm.testing.servers import KafkaServer, PostgresServer, ZooKeeperServer
from sparkstorm.testing.shells import (
    BoltRun,
    check_shell_bolt,
    check_shell_parent,
    check_shell_spout,
)
from sparkstorm.testing.simulation import Observer, Outcome, Simulation, simulate
from sparkstorm.testing.sinks import MemorySink
from sparkstorm.testing.sources import LogSpout, QueueSpout
from sparkstorm.testing.spouts import FeederSpout, FixedSpout
from sparkstorm.testing.waiting import wait_until
from sparkstorm.testing.witness import BrokenPromise

__all__ = [
    "BoltRun",
    "BrokenPromise",
    "Emitted",
    "Faults",
    "FeederSpout",
    "FixedSpout",
    "KafkaServer",
    "LocalRunner",
    "LogSpout",
    "ManualClock",
    "MemorySink",
    "PostgresServer",
    "ZooKeeperServer",
    "Observer",
    "Outcome",
    "QueueSpout",
    "Simulation",
    "check_shell_bolt",
    "check_shell_parent",
    "check_shell_spout",
    "complete_topology",
    "simulate",
    "wait_until",
]
