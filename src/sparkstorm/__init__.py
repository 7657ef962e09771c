"""sparkstorm: Storm's guaranteed message processing, in Python, on Spark.

You write spouts and bolts. The topology runs as one Spark Structured Streaming query, and
sparkstorm tracks every message through the whole tree of tuples it causes.
"""

from typing import TYPE_CHECKING, Any

from sparkstorm._version import __version__
from sparkstorm.components.bolt import BasicBolt, Bolt
from sparkstorm.components.collector import BasicCollector, BoltCollector, SpoutCollector
from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import (
    EXPIRED,
    Messages,
    PartitionedSpout,
    Split,
    Spout,
    Unreadable,
)
from sparkstorm.components.stateful import HeldTuples, KeyValueState, State, StatefulBolt
from sparkstorm.errors import (
    CheckpointError,
    CommitError,
    ComponentError,
    ConfigError,
    EmitError,
    EnvironmentFault,
    SparkstormError,
    SpoutConnectionError,
    TopologyError,
    TrackingError,
    WorldError,
)
from sparkstorm.metrics import Statistics, TaskMetrics
from sparkstorm.streams import Stream
from sparkstorm.topology.graph import Topology
from sparkstorm.topology.grouping import CustomGrouping
from sparkstorm.tuples import Fields, Tuple
from sparkstorm.verdicts import Failure, Reason

if TYPE_CHECKING:
    from sparkstorm.config import Config
    from sparkstorm.topology.builder import TopologyBuilder

__all__ = [
    # components
    "BasicBolt",
    "BasicCollector",
    "Bolt",
    "BoltCollector",
    "CommitterBolt",
    "EXPIRED",
    "HeldTuples",
    "KeyValueState",
    "Messages",
    "PartitionedSpout",
    "Split",
    "Spout",
    "SpoutCollector",
    "State",
    "StatefulBolt",
    "TaskContext",
    "Transaction",
    "Unreadable",
    # tuples and streams
    "Fields",
    "Stream",
    "Tuple",
    # topology
    "Config",
    "CustomGrouping",
    "Topology",
    "TopologyBuilder",
    # running
    "Failure",
    "Reason",
    "Statistics",
    "TaskMetrics",
    "bolts",
    "spouts",
    "submit",
    # errors
    "CheckpointError",
    "CommitError",
    "ComponentError",
    "ConfigError",
    "EmitError",
    "EnvironmentFault",
    "SparkstormError",
    "SpoutConnectionError",
    "TopologyError",
    "TrackingError",
    "WorldError",
    "__version__",
]


_LOADED_LATE = {
    "Config": "sparkstorm.config",
    "TopologyBuilder": "sparkstorm.topology.builder",
    "submit": "sparkstorm.spark.runner",
}
"""Where names are that Spark's short-lived processes do without: they start sooner so."""


def __getattr__(name: str) -> Any:
    """Load on first use: modules that need PySpark, pydantic, or a client library."""
    import importlib

    if name in _LOADED_LATE:
        return getattr(importlib.import_module(_LOADED_LATE[name]), name)
    if name in ("bolts", "spouts", "testing"):
        return importlib.import_module(f"sparkstorm.{name}")
    msg = f"module 'sparkstorm' has no attribute {name!r}"
    raise AttributeError(msg)
