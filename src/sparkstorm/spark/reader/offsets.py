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
    """The loads of one partition, pickled by the driver."""

    dest: int
    loads: bytes


@final
class PlanReader(DataSourceStreamReader):
    """Asks the driver for the next batch and hands the planned loads to Spark.

    ``latestOffset(start)`` tells the driver that every batch before ``start`` is committed.
    """

    def __init__(self, link: LinkClient) -> None:
        self._link = link

    def initialOffset(self) -> dict[str, int]:
        """Return batch 0: Spark asks when the checkpoint is new."""
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next batch, or ``start`` if none is planned after a while."""
        head, _ = self._link.ask({"ask": "latest", "start": start["batch"]})
        return {"batch": head["end"]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the loads of each partition of the batch."""
        head, parts = self._link.ask({"ask": "partitions", "start": start["batch"]})
        return [
            LoadPartition(dest, loads)
            for dest, loads in zip(head["partitions"], parts, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Hand on a partition's loads. Spark calls this on an executor."""
        if isinstance(partition, LoadPartition):
            dest = pa.array([partition.dest], pa.int32())
            loads = pa.array([partition.loads], pa.binary())
            yield pa.RecordBatch.from_arrays([dest, loads], schema=_SCHEMA)
        gc.freeze()  # Spark's daemon collects after each task: keep its round short

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: the next ``latestOffset`` has told the driver already."""

    def stop(self) -> None:
        """Close the link."""
        self._link.close()
