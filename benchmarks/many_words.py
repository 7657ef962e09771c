"""Word count with 100,000 distinct words in each batch: the price of state by key.

``python -m benchmarks.many_words [rounds]``, 3 unless given. Three sides in turns, each in a
process of its own, same batches and Spark settings: sparkstorm with counts in state; sparkstorm
with the same bolt but without state; plain PySpark with ``transformWithState`` for each word. A
message is a number, from which both sides make six words. Exit code 1 if a ratio misses its target.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

import sparkstorm as ss
from benchmarks import ours
from benchmarks.large_state import Numbers
from benchmarks.measure import Command, interleave, ratios
from benchmarks.peers.pyspark_tws import CountWord
from benchmarks.peers.streaming_word_count import LastCounts
from benchmarks.run_result import WARM_UP_BATCHES, BatchMeter
from benchmarks.spark_settings import PARALLELISM, spark_session

WORDS = 100_000
WORDS_PER_MESSAGE = 6
BATCH = 200_000
TARGETS = {"pyspark": 3.0, "stateless": 0.8}


def words_of(number: int) -> list[str]:
    """Return the words of a number; a batch has each word 12 times."""
    first = number * WORDS_PER_MESSAGE
    return [f"word{n % WORDS}" for n in range(first, first + WORDS_PER_MESSAGE)]


class Split(ss.BasicBolt):
    """A number in, its words out."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Emit the words of one message."""
        for word in words_of(tup["n"]):
            collector.emit([word])


def run_ours(side: str, batches: int) -> None:
    """Run a side of sparkstorm's and print its figures."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers(batches * BATCH))
    split = builder.set_bolt("split", Split(), parallelism=PARALLELISM)
    split.local_or_shuffle_grouping("numbers")
    count = ours.WordCountWithoutState() if side == "stateless" else ours.WordCount()
    builder.set_bolt("count", count, parallelism=PARALLELISM).fields_grouping("split", ["word"])
    totals, meter = ours.Totals(running=side != "stateless"), BatchMeter()
    config = ss.Config(batch_min_messages=BATCH, batch_max_messages=BATCH)
    ours.play(builder.create_topology(), config, totals, meter)
    meter.result(side, counts_ok=are_right(totals.counts, batches)).print_json()


def run_pyspark(batches: int) -> None:
    """Run the peer and print its figures."""
    with spark_session("many-words") as spark:
        numbers = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", BATCH)
            .option("numPartitions", PARALLELISM)
            .load()
        )
        sink = LastCounts(batches=batches, batch=BATCH)
        sink.run(count_words(numbers))
    counts_ok = are_right(sink.counts, batches)
    sink.meter.result("pyspark", counts_ok=counts_ok).print_json()


def count_words(numbers: DataFrame) -> DataFrame:
    """Split in Python, count in a state of its own for each word."""

    def split(frames: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for frame in frames:
            words = [word for n in frame.column("value").to_pylist() for word in words_of(n)]
            yield pa.RecordBatch.from_arrays([pa.array(words, pa.string())], names=["word"])

    return (
        numbers.mapInArrow(split, "word string")
        .groupBy("word")
        .transformWithState(CountWord(), "word string, count long", "update", "none")
    )


def are_right(counts: dict[str, int], batches: int) -> bool:
    """Whether each word was counted as often as it came."""
    times = batches * BATCH * WORDS_PER_MESSAGE // WORDS
    return counts == {f"word{n}": times for n in range(WORDS)}


def main() -> int:
    """Run all sides in turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("--side", choices=["tracked", *TARGETS])
    parser.add_argument("--batches", type=int, default=WARM_UP_BATCHES + 8)
    options = parser.parse_args()
    if options.side == "pyspark":
        run_pyspark(options.batches)
        return 0
    if options.side:
        run_ours(options.side, options.batches)
        return 0
    return compare(options.rounds)


def compare(rounds: int) -> int:
    """Run all sides in turns; return the exit code."""
    sides = {
        side: Command(module="benchmarks.many_words", arguments=_arguments(side), timeout_s=900)
        for side in ("tracked", *TARGETS)
    }
    speeds: dict[str, list[float]] = {side: [] for side in sides}
    right = True
    for number, side, figures in interleave(sides, rounds):
        speed = float(str(figures["sentences_per_s"]))
        speeds[side].append(speed)
        right &= bool(figures["counts_ok"])
        print(f"round {number + 1}: {side} {speed:,.0f} messages/s", flush=True)
    print(f"counts: {'equal' if right else 'WRONG'}")
    return 0 if all([right, *(_meets(side, speeds) for side in TARGETS)]) else 1


def _arguments(side: str) -> list[str]:
    """Return a side's arguments.

    The peer gets fewer batches, because its batches take far longer.
    """
    few = ["--batches", str(WARM_UP_BATCHES + 3)] if side == "pyspark" else []
    return ["--side", side, *few]


def _meets(side: str, speeds: dict[str, Sequence[float]]) -> bool:
    found = ratios(speeds["tracked"], speeds[side])
    print(
        f"counts in state ÷ {side}: {found.median:.2f} ({found.low:.2f}–{found.high:.2f}), "
        f"target {TARGETS[side]}"
    )
    return found.median >= TARGETS[side]


if __name__ == "__main__":
    sys.exit(main())
