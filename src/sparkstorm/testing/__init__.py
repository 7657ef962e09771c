"""Tools for testing topologies: without Spark, without real time, in this process."""

from sparkstorm.local.runner import LocalRunner
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.harness import Emitted, complete_topology
from sparkstorm.testing.spouts import FeederSpout, FixedSpout

__all__ = [
    "Emitted",
    "FeederSpout",
    "FixedSpout",
    "LocalRunner",
    "ManualClock",
    "complete_topology",
]
