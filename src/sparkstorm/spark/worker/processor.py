"""What Spark knows of a stage with state: its variables, and a function that takes its rows.

Before the first batch Spark starts a process of its own for each such stage, only to hear which
variables there are, and waits for that process. So this module loads little of ours: the stage
itself travels pickled, and is unpickled where rows come.
"""

import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from sparkstorm.spark.worker.state_store import PartitionState

__all__ = ["StageProcessor", "StateStage"]

StateStage: TypeAlias = Callable[[PartitionState, Iterator[Row]], Iterator[Row]]
"""Runs a stage on the state of one partition, and the rows that have come for it."""


@final
class StageProcessor(StatefulProcessor):
    """A stage with state, for ``transformWithState``: each partition has a single key.

    Args:
        stage: a pickled :data:`StateStage`.
        has_entries: whether any task of the stage keeps entries.
    """

    def __init__(self, stage: bytes, *, has_entries: bool) -> None:
        self._stage = stage
        self._has_entries = has_entries

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._state = PartitionState(handle, has_entries=self._has_entries)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:
        """Run the stage on one partition."""
        self._state.begin(key)
        stage: StateStage = pickle.loads(self._stage)  # noqa: S301 - from our own driver
        return stage(self._state, rows)

    def close(self) -> None:
        """Do nothing: bolts live on in the process."""
