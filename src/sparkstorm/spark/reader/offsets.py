"""The source as Spark sees it: an offset is the number of the next batch, nothing more."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from sparkstorm.spark.link import LinkClient

__all__ = ["LoadPartition", "PlanReader"]

_SCHEMA = pa.schema([pa.field("dest", pa.int32()), pa.field("loads", pa.binary())])


@final
@dataclass
class LoadPartition(InputPartition):
    """What one partition has to read: loads, pickled by the driver."""

    dest: int
    loads: bytes


@final
class PlanReader(DataSourceStreamReader):
    """Asks the driver what comes next; ``read`` only hands on what was planned.

    ``latestOffset(start)`` tells the driver that every batch before ``start`` is committed.
    """

    def __init__(self, link: LinkClient) -> None:
        self._link = link

    def initialOffset(self) -> dict[str, int]:
        """A new checkpoint starts with batch 0."""
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next batch, or ``start`` if there is none after a while."""
        head, _ = self._link.ask({"ask": "latest", "start": start["batch"]})
        return {"batch": head["end"]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return what each partition of the batch reads."""
        head, parts = self._link.ask({"ask": "partitions", "start": start["batch"]})
        return [
            LoadPartition(dest, loads)
            for dest, loads in zip(head["partitions"], parts, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Hand on a partition's loads (on an executor)."""
        if isinstance(partition, LoadPartition):
            dest = pa.array([partition.dest], pa.int32())
            loads = pa.array([partition.loads], pa.binary())
            yield pa.RecordBatch.from_arrays([dest, loads], schema=_SCHEMA)
        gc.freeze()

    def commit(self, end: dict[str, int]) -> None:
        """Nothing: ``latestOffset`` says it earlier."""

    def stop(self) -> None:
        """Close the link."""
        self._link.close()
