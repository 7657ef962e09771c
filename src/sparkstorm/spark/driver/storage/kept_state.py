"""Read the state in a checkpoint by Spark's state data source; the topology need not run."""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sparkstorm.errors import CheckpointError
from sparkstorm.spark.driver.session import query_session
from sparkstorm.state.stores import MemoryStore

__all__ = ["StateReader"]

_COLUMNS = {
    "chunks": ("key.key", "value.data"),
    "entries": ("user_map_key.name", "user_map_value.data"),
}
"""The columns in which Spark's state data source shows the name and content of each variable."""


@final
class StateReader:
    """Reads the chunks and entries of tasks as of the last committed batch.

    Args:
        session: any session.
        checkpoint: the checkpoint folder.
        stages: how many stages of the query keep state.
    """

    def __init__(self, session: SparkSession, checkpoint: str, stages: int) -> None:
        self._session = query_session(session, 1, checkpoint)
        self._checkpoint = checkpoint
        self._stages = stages

    def chunks(self, component: str, tasks: int) -> Iterator[tuple[int, MemoryStore]]:
        """Yield each task's number within its component, from 0, and its chunks."""
        for index in range(tasks):
            store = MemoryStore()
            for name, data in self._read("chunks", f"{component}/{index}/", ("",)):
                store.put(name, data)
            yield index, store

    def entries(
        self, component: str, tasks: int, ends: Sequence[str]
    ) -> Iterator[tuple[int, str, bytes]]:
        """Yield (task number, name, content) of entries whose names end in any of ``ends``."""
        for index in range(tasks):
            for name, data in self._read("entries", f"{component}/{index}/", ends):
                yield index, name, data

    def task(self, component: str, index: int, *, has_entries: bool) -> MemoryStore:
        """Return the whole state of one task, committed, as the task itself would load it.

        Args:
            component: the task's component.
            index: the task's number within its component, from 0.
            has_entries: whether the component keeps entries beside chunks.
        """
        store = MemoryStore()
        for variable in ("chunks", "entries") if has_entries else ("chunks",):
            for name, data in self._read(variable, f"{component}/{index}/", ("",)):
                store.put(name, data)
        store.commit()
        return store

    def _read(
        self, variable: str, namespace: str, ends: Sequence[str]
    ) -> Iterator[tuple[str, bytes]]:
        for operator in range(self._stages):
            frame = self._variable(variable, operator)
            if frame is not None:
                some = reduce(or_, (sf.col("name").endswith(end) for end in ends))
                mine = frame.where(sf.col("name").startswith(namespace) & some)
                for row in mine.toLocalIterator():
                    yield row["name"].removeprefix(namespace), bytes(row["data"])

    def _variable(self, variable: str, operator: int) -> DataFrame | None:
        """Return a state variable of a stateful operator, or None if the operator lacks it."""
        reader = self._session.read.format("statestore").option("stateVarName", variable)
        place = f"{self._checkpoint.rstrip('/')}/spark"
        try:
            frame = reader.option("operatorId", operator).load(place)
        except PySparkException as error:
            if error.getCondition() == "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE":
                return None
            raise CheckpointError(
                f"the checkpoint {self._checkpoint} has no state that Spark can read yet, or it "
                f"is damaged: {_first_line(error)}"
            ) from error
        name, data = _COLUMNS[variable]
        return frame.select(sf.col(name).alias("name"), sf.col(data).alias("data"))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
