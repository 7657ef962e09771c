"""The word count that the tests share: lines are split, words are counted in state."""

import sys

import cloudpickle

import sparkstorm as ss


class Split(ss.BasicBolt):
    """Splits lines at white space."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])


class WordCount(ss.StatefulBolt):
    """Counts words in state, and emits each new count."""

    outputs = "word string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["word"], 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], count], anchors=tup)
        self.collector.ack(tup)


def word_count(
    lines: ss.Spout | ss.PartitionedSpout,
    *,
    split: ss.Bolt | ss.BasicBolt | None = None,
    count: WordCount | None = None,
    parallelism: int = 2,
) -> ss.Topology:
    """Wire the word count behind a spout of lines; a bolt may be replaced by a special one."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", lines)
    builder.set_bolt("split", split or Split(), parallelism).shuffle_grouping("lines")
    builder.set_bolt("count", count or WordCount(), parallelism).fields_grouping("split", "word")
    return builder.create_topology()


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import it
