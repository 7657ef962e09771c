"""The common parts of the plain PySpark word counts: options, source, sink and measuring.

A peer gives one function from the stream of sentences to the stream of (word, count) updates.
"""

import argparse
import tempfile
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.run_result import BatchMeter, RunResult
from benchmarks.spark_settings import PARALLELISM, spark_session
from benchmarks.workload import SENTENCE_COUNT, SENTENCES, counts_match

CountWords = Callable[[DataFrame], DataFrame]


def split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Split sentences into words: the user's function, the same in every PySpark peer."""
    for batch in batches:
        words = [word for text in batch.column(0).to_pylist() for word in text.split()]
        yield pa.RecordBatch.from_arrays([pa.array(words, pa.string())], names=["word"])


def main(peer: str, count_words: CountWords, *, default_sentences: int) -> None:
    """Run one peer from the command line."""
    options = _parse_options(peer, default_sentences)
    with spark_session(peer, daemon_module=options.daemon_module) as spark:
        run(spark, peer, count_words, options.sentences, options.batch).print_json()


def run(
    spark: SparkSession, peer: str, count_words: CountWords, sentences: int, batch: int
) -> RunResult:
    """Count the words of so many sentences in whole batches, and measure the run."""
    sink = LastCounts(batches=-(-sentences // batch), batch=batch)
    sink.run(count_words(sentence_stream(spark, batch)))
    counts_ok = counts_match(sink.counts, sink.meter.sentences)
    return sink.meter.result(peer, counts_ok=counts_ok)


def sentence_stream(spark: SparkSession, batch: int) -> DataFrame:
    """Open the endless stream of sentences, ``batch`` of them a trigger.

    Spark's own source gives the numbers, and the JVM looks the sentences up. A source in Python
    that yields slices of an Arrow array would be a Python stage more, and 20 % slower.
    """
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", batch)
        .option("numPartitions", PARALLELISM)
        .load()
    )
    place = (sf.col("value") % SENTENCE_COUNT).cast("int") + 1
    return numbers.select(sf.element_at(sf.lit(list(SENTENCES)), place).alias("sentence"))


class LastCounts:
    """The sink: keeps the last count of each word, and notices the end of the run."""

    def __init__(self, *, batches: int, batch: int) -> None:
        self.counts: dict[str, int] = {}
        self.meter = BatchMeter()
        self._batches = batches
        self._batch = batch
        self._all_seen = threading.Event()

    def run(self, updates: DataFrame) -> None:
        """Run the query to its last batch."""
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as checkpoint:
            query = (
                updates.writeStream.foreachBatch(self.keep)
                .option("checkpointLocation", checkpoint)
                .outputMode("update")
                .start()
            )
            self.wait(query)
            query.stop()

    def keep(self, updates: DataFrame, batch_id: int) -> None:
        """Collect the updates of one batch. Spark calls this method in this process."""
        if batch_id >= self._batches:
            return  # the source has no end: this batch came while the query was being stopped
        table = updates.toArrow()
        words, counts = table.column("word").to_pylist(), table.column("count").to_pylist()
        self.counts.update(zip(words, counts, strict=True))
        self.meter.batch_done(self._batch)
        if batch_id == self._batches - 1:
            self._all_seen.set()

    def wait(self, query: StreamingQuery) -> None:
        """Wait for the last batch; raise the query's error, if any."""
        while not self._all_seen.wait(1.0):
            if not query.isActive:
                query.awaitTermination()
                raise RuntimeError("the query ended before its last batch")


def _parse_options(peer: str, default_sentences: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=peer)
    parser.add_argument("--sentences", type=int, default=default_sentences)
    parser.add_argument("--batch", type=int, default=200_000, help="sentences a trigger")
    parser.add_argument("--daemon-module", help="Python worker daemon; 'stock' for Spark's own")
    return parser.parse_args()
