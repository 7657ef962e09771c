"""The private parts of Spark that make a source in the driver, each with the reason.

A source is a public interface of Spark's JVM (``org.apache.spark.sql.connector.read``), and py4j
lets a Python object implement an interface. What stands around the source has no public way: how a
query reads from a table that is no class on Java's path, and values that executors can load.
"""

import json
import struct
from collections.abc import Iterable
from typing import Any, final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from sparkstorm.spark.needs import Need, Vital

__all__ = ["SOURCE_NEEDS", "SourceValues", "batch_of", "frame_of", "row_bytes"]

_SQL = "org.apache.spark.sql"
_RELATION = f"{_SQL}.catalyst.streaming.StreamingRelationV2"
_NEWEST_RELATION = "$lessinit$greater$default$9"
_OFFSET = f"{_SQL}.execution.datasources.v2.python.PythonStreamingSourceOffset"
_MEMORY = f"{_SQL}.execution.streaming.runtime.MemoryStream"
_ROW = f"{_SQL}.catalyst.expressions.UnsafeRow"


def _need(owner: str, name: str, *takes: str, why: str, since: str = "3.0") -> Need:
    return Need(
        owner=owner,
        name=name,
        takes=takes,
        why=why,
        since=since,
        without="nothing is read",
        vital=Vital.ALL,
    )


SOURCE_NEEDS: tuple[Need, ...] = (
    _need(
        "pyspark.java_gateway",
        "ensure_callback_server_started",
        why="Spark's JVM calls the source in the driver's own Python",
        since="1.3",
    ),
    _need(
        "pyspark.sql.SparkSession",
        "_jsparkSession",
        why="from PySpark's session to Spark's",
        since="3.3",
    ),
    _need(
        _RELATION,
        _NEWEST_RELATION,
        why="a query reads from a table that is an object",
        since="4.3",
    ),
    _need(
        f"{_SQL}.classic.Dataset",
        "ofRows",
        f"{_SQL}.classic.SparkSession",
        f"{_SQL}.catalyst.plans.logical.LogicalPlan",
        why="makes a frame of the relation",
        since="4.0",
    ),
    _need(
        f"{_SQL}.catalyst.types.DataTypeUtils",
        "toAttributes",
        f"{_SQL}.types.StructType",
        why="the relation's columns",
        since="3.5",
    ),
    _need(_OFFSET, "json", why="an offset that is any JSON", since="4.0"),
    _need(f"{_MEMORY}InputPartition", "records", why="carries rows to the executors", since="4.1"),
    _need(
        f"{_MEMORY}ReaderFactory$",
        "createReader",
        f"{_SQL}.connector.read.InputPartition",
        why="reads those rows on an executor, without a Python process",
        since="4.1",
    ),
    _need(_ROW, "pointTo", "[B", "int", why="a row is made of its bytes"),
)


def frame_of(session: SparkSession, table: Any, schema: Any) -> DataFrame:
    """Return the streaming frame that reads from a table.

    Args:
        session: the query's session.
        table: a Python object that implements Spark's ``SupportsRead``.
        schema: Java's ``StructType`` of the table's columns.
    """
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    listen: Any = ensure_callback_server_started
    listen(gateway)
    java = gateway.jvm.org.apache.spark.sql
    none = gateway.jvm.scala.Option.empty()
    relation = java.catalyst.streaming.StreamingRelationV2(
        none,
        table.name(),
        table,
        java.util.CaseInsensitiveStringMap.empty(),
        java.catalyst.types.DataTypeUtils.toAttributes(schema),
        none,
        none,
        none,
        getattr(java.catalyst.streaming.StreamingRelationV2, _NEWEST_RELATION)(),
    )
    plan = java.classic.Dataset.ofRows(session._jsparkSession, relation)  # noqa: SLF001
    return DataFrame(plan, session)


@final
class SourceValues:
    """Makes the Java values with which a source answers Spark's questions."""

    def __init__(self, session: SparkSession, ddl: str) -> None:
        gateway: Any = session.sparkContext._gateway  # noqa: SLF001
        self._gateway = gateway
        java = gateway.jvm
        sql = java.org.apache.spark.sql
        connector, runtime = sql.connector, sql.execution.streaming.runtime
        self._Offset = sql.execution.datasources.v2.python.PythonStreamingSourceOffset
        self._Partition = runtime.MemoryStreamInputPartition
        self._AnyPartition = connector.read.InputPartition
        self._Row = sql.catalyst.expressions.UnsafeRow
        self.schema = sql.types.StructType.fromDDL(ddl)
        self.factory = getattr(getattr(runtime, "MemoryStreamReaderFactory$"), "MODULE$")
        self.no_limit = connector.read.streaming.ReadLimit.allAvailable()
        self.micro_batches = java.java.util.Set.of(
            connector.catalog.TableCapability.MICRO_BATCH_READ
        )
        self.rows_not_columns = getattr(connector.read, "Scan$ColumnarSupportMode").UNSUPPORTED
        self.no_metrics = self._array(connector.metric.CustomMetric, [])
        self.no_task_metrics = self._array(connector.metric.CustomTaskMetric, [])

    def offset(self, batch: int) -> Any:
        """Return the offset before a batch."""
        return self._Offset(json.dumps({"batch": batch}))

    def offset_of(self, text: str) -> Any:
        """Return the offset of a text that Spark has kept."""
        return self._Offset(text)

    def partitions(self, loads: Iterable[tuple[int, bytes]]) -> Any:
        """Return an input partition for each (partition, loads): each has that one row."""
        return self._array(self._AnyPartition, [self._partition(*one) for one in loads])

    def row(self, dest: int, loads: bytes) -> Any:
        """Return a row of Spark's."""
        data = row_bytes(dest, loads)
        row = self._Row(2)
        row.pointTo(data, len(data))
        return row

    def _partition(self, dest: int, loads: bytes) -> Any:
        return self._Partition(self._array(self._Row, [self.row(dest, loads)]))

    def _array(self, kind: Any, values: list[Any]) -> Any:
        array = self._gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array


def batch_of(offset: Any) -> int:
    """Return the batch after an offset."""
    return int(json.loads(offset.json())["batch"])


def row_bytes(dest: int, loads: bytes) -> bytes:
    """Return the bytes of an ``UnsafeRow`` of an int and a binary.

    Eight bytes say which columns are null. Each column has eight more: the int, or where the binary
    begins and how long it is. Binaries follow, filled up to eight bytes.

    >>> row_bytes(3, b"ab").hex(" ", 8)
    '0000000000000000 0300000000000000 0200000018000000 6162000000000000'
    """
    begins = 24
    head = struct.pack("=qiiq", 0, dest, 0, begins << 32 | len(loads))
    return head + loads + bytes(-len(loads) % 8)
