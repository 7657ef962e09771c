"""A plain streaming query with a number of Python stages, for the time of a small batch.

Source in Python, then ``--stages`` Python stages with an exchange between each two, then a sink
that collects. A stage passes its rows on. One stage may keep a count in Spark's state
(``--stateful-stage``). The rows resemble sparkstorm's: a destination, a number, some bytes.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from benchmarks.run_result import SmallBatchResult
from benchmarks.spark_settings import PARALLELISM, spark_session

ROW_SCHEMA = "dest int, seq long, packet binary"
_PACKET = bytes(100)


class RowRange(InputPartition):
    """The rows ``start`` up to, not including, ``stop``, all for one destination."""

    def __init__(self, start: int, stop: int, dest: int) -> None:
        super().__init__((start, stop, dest))
        self.start = start
        self.stop = stop
        self.dest = dest


class RowReader(DataSourceStreamReader):
    """Offers ``batch`` rows a trigger, without end."""

    def __init__(self, batch: int, dests: list[int]) -> None:
        self._batch = batch
        self._dests = dests

    def initialOffset(self) -> dict[str, int]:
        """Start at the first row."""
        return {"next": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Go one batch further."""
        return {"next": start["next"] + self._batch}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Share the rows of a batch evenly among the destinations."""
        first, rows, parts = start["next"], end["next"] - start["next"], len(self._dests)
        cuts = [first + rows * i // parts for i in range(parts + 1)]
        return [RowRange(a, b, d) for a, b, d in zip(cuts, cuts[1:], self._dests, strict=False)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition as one Arrow batch."""
        assert isinstance(partition, RowRange)
        rows = partition.stop - partition.start
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([partition.dest] * rows, pa.int32()),
                pa.array(range(partition.start, partition.stop), pa.int64()),
                pa.array([_PACKET] * rows, pa.binary()),
            ],
            names=["dest", "seq", "packet"],
        )


class RowSource(DataSource):
    """The format ``rows`` with the options ``batch`` and ``dests``."""

    @classmethod
    def name(cls) -> str:
        """Give the name for ``spark.readStream.format``."""
        return "rows"

    def schema(self) -> str:
        """Give the columns."""
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Make the reader from the options."""
        dests = [int(dest) for dest in self.options["dests"].split(",")]
        return RowReader(int(self.options["batch"]), dests)


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do nothing, as a Python stage."""
    yield from batches


class PassOnCounted(StatefulProcessor):
    """Passes rows on and counts them: one read and one write of the state for each destination."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one value of the state."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Pass the rows of one destination on."""
        before = self._count.get()
        count = before[0] if before else 0
        for row in rows:
            count += 1
            yield row
        self._count.update((count,))

    def close(self) -> None:
        """Do nothing."""


def plain_stages(rows: DataFrame, stages: int, stateful_stage: int) -> DataFrame:
    """Chain the stages, an exchange between each two."""
    for stage in range(1, stages + 1):
        if stage == stateful_stage:  # brings its own exchange
            rows = rows.groupBy("dest").transformWithState(
                PassOnCounted(), ROW_SCHEMA, "append", "none"
            )
        else:
            exchanged = rows.repartitionById(PARALLELISM, "dest") if stage > 1 else rows
            rows = exchanged.mapInArrow(pass_on, ROW_SCHEMA)
    return rows


def spread_destinations(spark: SparkSession) -> list[int]:
    """Return one destination for each partition, right for both kinds of exchange."""
    places = spark.range(1_000).select(
        sf.col("id").cast("int").alias("dest"),
        sf.pmod(sf.hash(sf.col("id").cast("int")), sf.lit(PARALLELISM)).alias("by_hash"),
    )
    by_place = {
        row.by_hash: row.dest for row in places.collect() if row.by_hash == row.dest % PARALLELISM
    }
    return [by_place[place] for place in range(PARALLELISM)]


class BatchClock:
    """The sink: collects each batch, notes the time of its end, and counts the rows."""

    def __init__(self, batches: int, batch: int) -> None:
        self.ends_s: list[float] = []
        self.rows_ok = True
        self._batches = batches
        self._batch = batch
        self._all_seen = threading.Event()

    def keep(self, rows: DataFrame, batch_id: int) -> None:
        """Collect one batch. Spark calls this method in this process."""
        seqs = rows.toArrow().column("seq").to_pylist()
        first = batch_id * self._batch
        self.rows_ok = self.rows_ok and sorted(seqs) == list(range(first, first + self._batch))
        self.ends_s.append(time.perf_counter())
        if len(self.ends_s) == self._batches:
            self._all_seen.set()

    def wait(self, query: StreamingQuery) -> None:
        """Wait for the last batch; raise the query's error, if any."""
        while not self._all_seen.wait(1.0):
            if not query.isActive:
                query.awaitTermination()
                raise RuntimeError("the query ended before its last batch")


def run(spark: SparkSession, options: argparse.Namespace) -> SmallBatchResult:
    """Run the batches and measure those after the warm-up."""
    clock = BatchClock(options.sentences // options.batch, options.batch)
    spark.dataSource.register(RowSource)
    source = spark.readStream.format("rows").option("batch", options.batch)
    rows = source.option("dests", ",".join(map(str, spread_destinations(spark)))).load()
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as checkpoint:
        query = (
            plain_stages(rows, options.stages, options.stateful_stage)
            .writeStream.foreachBatch(clock.keep)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        clock.wait(query)
        query.stop()
    times = [b - a for a, b in zip(clock.ends_s, clock.ends_s[1:], strict=False)]
    times = times[options.warm_up - 1 :]
    return SmallBatchResult(
        peer="plain_query",
        stages=options.stages,
        stateful_stage=options.stateful_stage,
        batch=options.batch,
        median_batch_s=statistics.median(times),
        counts_ok=clock.rows_ok,
        batch_times_s=times,
    )


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plain_query")
    parser.add_argument("--stages", type=int, default=3, help="Python stages behind the source")
    parser.add_argument("--stateful-stage", type=int, default=0, help="counted from 1; 0 for none")
    parser.add_argument("--batch", type=int, default=10, help="rows a trigger")
    parser.add_argument("--sentences", type=int, default=1_000, help="rows in all")
    parser.add_argument("--warm-up", type=int, default=30, help="batches left out")
    parser.add_argument("--daemon-module", help="Python worker daemon; 'stock' for Spark's own")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark from the command line."""
    options = _parse_options()
    with spark_session("plain_query", daemon_module=options.daemon_module) as spark:
        run(spark, options).print_json()


if __name__ == "__main__":
    main()
