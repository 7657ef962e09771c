"""The source of a topology's query: Spark's JVM asks objects of the driver's own Python.

Each class implements interfaces of Spark's connectors. py4j calls the methods, on the thread of
the query: whoever answers has to be quick, or interruptible by ``PlanServer.stop``.

An offset is the number of the next batch, nothing more. ``latestOffset(start)`` tells the
coordinator that every batch before ``start`` is committed.
"""

from typing import Any, ClassVar, final

from pyspark.sql import DataFrame, SparkSession

from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.spark.rows import LOADS_DDL
from sparkstorm.spark.source_internals import SourceValues, batch_of, frame_of

__all__ = ["read_batches"]

_READ = "org.apache.spark.sql.connector.read"
_NAME = "sparkstorm"


def read_batches(session: SparkSession, server: PlanServer) -> DataFrame:
    """Return the streaming frame of the batches that the coordinator plans.

    Args:
        session: the query's session.
        server: answers Spark's questions.
    """
    values = SourceValues(session, LOADS_DDL)
    return frame_of(session, _Table(server, values), values.schema)


class _JavaObject:
    """A Python object that Java compares by identity: Spark keeps sources in maps."""

    def equals(self, other: object) -> bool:
        """Whether the other is this same object."""
        return other is self

    def hashCode(self) -> int:
        """Return a hash; a query has a single source."""
        return 1

    def toString(self) -> str:
        """Return the text on Spark's own pages."""
        return _NAME


@final
class _Table(_JavaObject):
    """The table, its scan, and the scan's builder: all that leads Spark to the stream."""

    class Java:
        """What py4j asks for."""

        implements: ClassVar = [
            "org.apache.spark.sql.connector.catalog.SupportsRead",
            f"{_READ}.ScanBuilder",
            f"{_READ}.Scan",
        ]

    def __init__(self, server: PlanServer, values: SourceValues) -> None:
        self._server = server
        self._values = values

    def name(self) -> str:
        """Return the table's name."""
        return _NAME

    def schema(self) -> Any:
        """Return the columns: a row for each partition with something to read."""
        return self._values.schema

    def capabilities(self) -> Any:
        """Return that the table is read in micro-batches."""
        return self._values.micro_batches

    def newScanBuilder(self, options: Any) -> "_Table":
        """Return the scan's builder."""
        return self

    def build(self) -> "_Table":
        """Return the scan."""
        return self

    def readSchema(self) -> Any:
        """Return the columns of the scan."""
        return self._values.schema

    def description(self) -> str:
        """Return the text on Spark's own pages."""
        return _NAME

    def columnarSupportMode(self) -> Any:
        """Return that there are rows, and no columnar batches."""
        return self._values.rows_not_columns

    def supportedCustomMetrics(self) -> Any:
        """Return no metrics: sparkstorm has its own."""
        return self._values.no_metrics

    def reportDriverMetrics(self) -> Any:
        """Return no metrics."""
        return self._values.no_task_metrics

    def toMicroBatchStream(self, checkpoint: str) -> "_Stream":
        """Return the stream. Spark asks once in the life of a query."""
        return _Stream(self._server, self._values)


@final
class _Stream(_JavaObject):
    """Spark's questions about batches."""

    class Java:
        """What py4j asks for."""

        implements: ClassVar = [
            f"{_READ}.streaming.MicroBatchStream",
            f"{_READ}.streaming.SupportsAdmissionControl",
        ]

    def __init__(self, server: PlanServer, values: SourceValues) -> None:
        self._server = server
        self._values = values

    def initialOffset(self) -> Any:
        """Return batch 0: Spark asks when the checkpoint is new."""
        return self._values.offset(0)

    def deserializeOffset(self, text: str) -> Any:
        """Return the offset that Spark has written to its checkpoint."""
        return self._values.offset_of(text)

    def getDefaultReadLimit(self) -> Any:
        """Return no limit: the coordinator decides how large a batch is."""
        return self._values.no_limit

    def latestOffset(self, start: Any, limit: Any) -> Any:
        """Return the end of the next batch, or ``start`` if none is planned after a while."""
        return self._values.offset(self._server.latest(batch_of(start)))

    def reportLatestOffset(self) -> None:
        """Return that nobody knows how much there is to read."""

    def planInputPartitions(self, start: Any, end: Any) -> Any:
        """Return the loads of each partition of the batch."""
        return self._values.partitions(self._server.partitions(batch_of(start)))

    def createReaderFactory(self) -> Any:
        """Return Spark's own reader of rows that come with a partition."""
        return self._values.factory

    def commit(self, end: Any) -> None:
        """Do nothing: the next ``latestOffset`` tells the coordinator."""

    def stop(self) -> None:
        """Do nothing: the source belongs to the run, not to the query."""
