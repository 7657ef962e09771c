"""Count the words of text files; track each line until all of its words are counted.

    sparkstorm run examples/word_count.py --available-now -- book.txt
    python examples/word_count.py book.txt

Without files, the example reads texts that every installation has: PySpark's licence texts.
"""

import importlib.util
import sys
from pathlib import Path

import sparkstorm as ss

SHOWN = 10


class SplitSentence(ss.BasicBolt):
    """Cuts a line into words, anchored to the line. The line is acked after its last word."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])


class WordCount(ss.StatefulBolt):
    """Keeps a count per word in Spark's state store, and emits each new count."""

    outputs = "word string, count long"

    def init_state(self, state: ss.KeyValueState) -> None:
        self.counts = state

    def execute(self, tup: ss.Tuple) -> None:
        count = self.counts.add(tup["word"])
        self.collector.emit([tup["word"], count], anchors=tup)
        self.collector.ack(tup)


class TopWords(ss.StatefulBolt):
    """Keeps the most frequent words so far, and prints them at the end of each batch."""

    def init_state(self, state: ss.KeyValueState) -> None:
        self.kept = state

    def execute(self, tup: ss.Tuple) -> None:
        word, count = tup.values
        if count > self.kept.get("bar", 0):
            top = {**self.kept.get("top", {}), word: count}
            best = sorted(top.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
            self.kept.put("top", dict(best))
            if len(best) == SHOWN:
                self.kept.put("bar", best[-1][1])
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        top = self.kept.get("top", {})
        print("  ".join(f"{word} {count}" for word, count in top.items()))


def topology(args: list[str]) -> ss.Topology:
    """Wire the word count over the given files."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(*(args or licence_texts())))
    builder.set_bolt("split", SplitSentence(), parallelism=2).local_or_shuffle_grouping("lines")
    builder.set_bolt("count", WordCount(), parallelism=2).fields_grouping("split", ["word"])
    builder.set_bolt("top", TopWords()).global_grouping("count")
    return builder.create_topology()


def licence_texts() -> list[str]:
    """Return the paths of the licence texts that are installed with PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return []
    return [str(path) for path in sorted(Path(spec.origin).parent.glob("licenses/*.txt"))]


if __name__ == "__main__":
    run = ss.submit(topology(sys.argv[1:]), name="word-count")
    run.wait_until_drained()
    statistics = run.stop()
    print(f"{statistics.acked} lines acked, {statistics.pending} pending")
