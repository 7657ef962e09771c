"""Tools for testing topologies: without Spark, without real time, in this process.

Start with :func:`complete_topology`: fixed input in, all emitted tuples out. :func:`run_message`
runs one message, as the tests of dead letters do. Feed single messages
with :class:`FeederSpout` on a :class:`LocalRunner`; search for rare faults with :func:`simulate`.
Real servers are in :mod:`sparkstorm.testing.servers`; the extra ``testing`` has their clients.
"""

from sparkstorm.local.runner import LocalRunner
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.faults import Faults
from sparkstorm.testing.harness import Emitted, complete_topology
from sparkstorm.testing.internal.witness import BrokenPromise
from sparkstorm.testing.messages import MessageFailed, read_payload, run_message
from sparkstorm.testing.shells import (
    BoltRun,
    check_shell_bolt,
    check_shell_parent,
    check_shell_spout,
)
from sparkstorm.testing.simulation import Observer, Outcome, Simulation, simulate
from sparkstorm.testing.sinks import MemorySink
from sparkstorm.testing.sources import LogSpout, RequeueSpout
from sparkstorm.testing.spouts import FeederSpout, FixedSpout
from sparkstorm.testing.waiting import PATIENCE_SECS, wait_until

__all__ = [
    # running a topology here
    "Emitted",
    "LocalRunner",
    "complete_topology",
    # running one message
    "MessageFailed",
    "read_payload",
    "run_message",
    # spouts and sinks
    "FeederSpout",
    "FixedSpout",
    "LogSpout",
    "MemorySink",
    "RequeueSpout",
    # shell components
    "BoltRun",
    "check_shell_bolt",
    "check_shell_parent",
    "check_shell_spout",
    # time
    "ManualClock",
    "PATIENCE_SECS",
    "wait_until",
    # faults
    "BrokenPromise",
    "Faults",
    "Observer",
    "Outcome",
    "Simulation",
    "simulate",
]
