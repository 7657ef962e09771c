"""sparkstorm's side of the word count: one run per mode, one JSON line at the end."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import sparkstorm as ss
from benchmarks.memory_per_message import measure_memory
from benchmarks.numbered_spout import NumberedSpout
from benchmarks.run_result import WARM_UP_BATCHES, BatchMeter, SmallBatchResult
from benchmarks.spark_settings import PARALLELISM, spark_session
from benchmarks.workload import SENTENCES, counts_match, expected_counts
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import StageKind

PEER = "sparkstorm"
_LOOK_SECS = 0.002
_SMALL_WARM_UP = 30
_SETTINGS: dict[str, dict[str, Any]] = {
    "untracked": {"acker_executors": 0},
    "untimed": {"stats_latencies": False},
    "unobserved": {"stats_latencies": False, "trace_messages": 0},
}


class SentenceSpout(NumberedSpout):
    """Sentence i is ``SENTENCES[i % 1000]``."""

    outputs = "sentence string"
    bytes_each = 40

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Return the sentences of a range of numbers."""
        places = np.arange(first, end) % len(SENTENCES)
        return pa.record_batch([pa.array(SENTENCES).take(pa.array(places))], ["sentence"])


class SplitSentence(ss.BasicBolt):
    """Splits sentences into words."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Split one sentence."""
        for word in tup["sentence"].split():
            collector.emit([word])


class WordCount(ss.StatefulBolt):
    """Counts in state; at the end of a batch emits all counts."""

    outputs = "word string, count long"

    def init_state(self, state: ss.KeyValueState) -> None:
        """Keep the state."""
        self.counts = state

    def execute(self, tup: ss.Tuple) -> None:
        """Count one word."""
        self.counts.add(tup["word"])
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        """Emit the running counts."""
        for word, count in self.counts.items():
            self.collector.emit([word, count])


class EachWordCount(ss.StatefulBolt):
    """Counts in state, and emits each count at once: for batches of a few sentences."""

    outputs = "word string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        """Count one word and emit its count."""
        word = tup["word"]
        self.collector.emit([word, self.state.add(word)], anchors=tup)
        self.collector.ack(tup)


class WordCountWithoutState(ss.Bolt):
    """Counts within the batch only."""

    outputs = "word string, count long"

    def prepare(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        """Start with nothing."""
        self.counts: dict[str, int] = {}

    def execute(self, tup: ss.Tuple) -> None:
        """Count one word."""
        word = tup["word"]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        """Emit the batch's counts and forget them."""
        for word, count in self.counts.items():
            self.collector.emit([word, count])
        self.counts.clear()


class Totals:
    """The counts that came out in the driver: running counts, or sums of batches."""

    def __init__(self, *, running: bool) -> None:
        self.counts: dict[str, int] = {}
        self._running = running

    def __call__(self, key: object, task: int, rows: Sequence[tuple[str, int]]) -> None:
        """Add the tuples of one packet."""
        if self._running:
            self.counts.update(rows)
        else:
            for word, count in rows:
                self.counts[word] = self.counts.get(word, 0) + count


def topology(sentences: int, count: ss.Bolt) -> ss.Topology:
    """Wire the word count."""
    builder = ss.TopologyBuilder()
    builder.set_spout("sentences", SentenceSpout(sentences))
    split = builder.set_bolt("split", SplitSentence(), parallelism=PARALLELISM)
    split.local_or_shuffle_grouping("sentences")
    builder.set_bolt("count", count, parallelism=PARALLELISM).fields_grouping("split", ["word"])
    return builder.create_topology()


def run(mode: str, batch: int | None, sentences: int) -> None:
    """Run one of the throughput modes and print its figures."""
    totals = Totals(running=mode != "stateless")
    meter = BatchMeter()
    count = WordCountWithoutState() if mode == "stateless" else WordCount()
    play(topology(sentences, count), _config(mode, batch), totals, meter)
    ok = counts_match(totals.counts, sentences)
    meter.result(PEER, counts_ok=ok).print_json()


def run_small(batch: int, sentences: int) -> None:
    """Time batches of a few sentences."""
    wired = topology(sentences, EachWordCount())
    totals, meter = Totals(running=True), BatchMeter()
    play(wired, _config("tracked", batch), totals, meter)
    result = meter.result(PEER, counts_ok=totals.counts == expected_counts(sentences))
    times = result.batch_times_s[_SMALL_WARM_UP:]
    stages = make_plan(wired, partitions=PARALLELISM).stages
    SmallBatchResult(
        peer=PEER,
        stages=len(stages),
        stateful_stage=1 + next(i for i, s in enumerate(stages) if s.kind is StageKind.STATE),
        batch=batch,
        median_batch_s=sorted(times)[len(times) // 2],
        counts_ok=result.counts_ok,
        batch_times_s=times,
    ).print_json()


def _config(mode: str, batch: int | None) -> ss.Config:
    settings: dict[str, Any] = dict(_SETTINGS.get(mode, {}))
    if batch is not None:
        settings |= {"batch_min_messages": batch, "batch_max_messages": batch}
    return ss.Config(**settings)


def play(wired: ss.Topology, config: ss.Config, totals: Totals, meter: BatchMeter) -> None:
    """Run a topology until it has drained; its bolt ``count`` emits counts."""
    with spark_session(PEER) as session, TemporaryDirectory() as folder:
        run = ss.submit(
            wired,
            name="word-count",
            config=config,
            session=session,
            checkpoint=Path(folder) / "checkpoint",
            taps=["count"],
            on_tap=totals,
        )
        seen = 0
        while not run.wait_until_drained(timeout=0) or seen < run.statistics().batches:
            now = run.statistics()
            if now.batches > seen:
                meter.batch_done(now.acked - meter.sentences)
                seen = now.batches
            time.sleep(_LOOK_SECS)
        run.stop()


def main() -> None:
    """Read the arguments and run one mode."""
    parser = argparse.ArgumentParser(description=__doc__)
    modes = ["tracked", "untracked", "untimed", "unobserved", "stateless", "small-batch", "memory"]
    parser.add_argument("--mode", choices=modes, default="tracked")
    parser.add_argument("--batch", default="200000", help="sentences a batch, or 'default'")
    parser.add_argument("--sentences", type=int, default=200_000 * (WARM_UP_BATCHES + 8))
    given = parser.parse_args()
    batch = None if given.batch == "default" else int(given.batch)
    if given.mode == "memory":
        measure_memory(PEER).print_json()
    elif given.mode == "small-batch":
        run_small(batch or 10, given.sentences)
    else:
        run(given.mode, batch, given.sentences)


if __name__ == "__main__":
    main()
