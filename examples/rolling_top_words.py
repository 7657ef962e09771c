"""The most frequent words of the last seconds, ranked anew each second.

    sparkstorm run examples/rolling_top_words.py --available-now

Storm's rolling top words, with skewed keys: a few words are most of the stream. So each word goes
to the less loaded of two counters (partial key grouping), and the next bolt adds up their counts.
Ranking takes two steps: each ranker knows some of the words, the last ranker merges their lists.
The counters tell their counts when a tick says that a second has passed. The other bolts emit at
the end of the batch, so each second's news goes all the way in one batch.

Words are tracked until they are counted; counts live in Spark's state and survive a crash. Rankings
are not tracked: the next second brings a newer ranking.
"""

import heapq
import random
from collections.abc import Iterable
from itertools import chain

import sparkstorm as ss

WORDS = ["ack", "anchor", "batch", "bolt", "edge", "kafka", "ledger", "root", "spout", "tree"]
RATE = 400
"""Words per second."""

SHOWN = 3

LINGER = 2
"""Seconds that the spout lives on after its last word was counted, so that the ranking shows it."""


class Words(ss.Spout):
    """Says random words for some seconds; the most frequent word changes every four seconds."""

    outputs = "word string"

    def __init__(self, secs: int) -> None:
        self.count = secs * RATE

    def open(
        self, config: ss.Config, context: ss.TaskContext, collector: ss.SpoutCollector
    ) -> None:
        self.collector, self.clock = collector, context.clock
        self.random, self.said, self.acked = random.Random(1), 0, 0
        self.started = self.last = self.clock.monotonic()

    def next_tuple(self) -> None:
        due = (self.clock.monotonic() - self.started) * RATE
        if self.said < min(due, self.count):
            hot = WORDS[self.said // (4 * RATE) % len(WORDS)]
            word = hot if self.random.random() < 0.5 else self.random.choice(WORDS)
            self.collector.emit([word], msg_id=self.said)
            self.said += 1

    def ack(self, msg_id: int) -> None:
        self.acked, self.last = self.acked + 1, self.clock.monotonic()

    def exhausted(self) -> bool:
        return self.acked == self.count and self.clock.monotonic() > self.last + LINGER


class RollingCount(ss.StatefulBolt):
    """Counts words by second; at a tick it emits each word's count within the window."""

    outputs = "word string, count long"

    def __init__(self, window: int) -> None:
        self.window = window

    def execute(self, tup: ss.Tuple) -> None:
        second = int(self.context.batch_time)
        if tup.is_tick:
            self.tell(second - self.window)
        else:
            counts = self.state.get(tup["word"], {})
            counts[second] = counts.get(second, 0) + 1
            self.state.put(tup["word"], counts)
        self.collector.ack(tup)

    def tell(self, before: int) -> None:
        for word, counts in list(self.state.items()):
            recent = {second: count for second, count in counts.items() if second > before}
            self.collector.emit([word, sum(recent.values())])
            if not recent:
                self.state.delete(word)  # emitted once as 0
            elif recent != counts:
                self.state.put(word, recent)


class AddUp(ss.StatefulBolt):
    """Adds up a word's counts from different counters."""

    outputs = "word string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        counts = self.state.get(tup["word"], {})
        counts[tup.task] = tup["count"]
        self.state.put(tup["word"], counts)
        self.collector.emit([tup["word"], sum(counts.values())], anchors=tup)
        self.collector.ack(tup)


class Rank(ss.StatefulBolt):
    """Keeps the counts of its words, and emits the highest."""

    outputs = ("ranking",)

    def execute(self, tup: ss.Tuple) -> None:
        if tup["count"]:
            self.state.put(tup["word"], tup["count"])
        else:
            self.state.delete(tup["word"])
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        self.collector.emit([highest(self.state.items())])


class MergeRankings(ss.StatefulBolt):
    """Keeps the last list of each ranker, and prints the highest counts of all."""

    outputs = ("ranking",)

    def execute(self, tup: ss.Tuple) -> None:
        self.state.put(tup.task, tup["ranking"])
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        lists = [ranking.items() for _, ranking in self.state.items()]
        best = highest(chain.from_iterable(lists))
        if best:
            print("  ".join(f"{word} {count}" for word, count in best.items()))
            self.collector.emit([best])


def highest(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the highest counts by word."""
    return dict(heapq.nlargest(SHOWN, counts, key=lambda item: (item[1], item[0])))


def topology(args: list[str]) -> ss.Topology:
    """Wire the ranking; arguments: for how many seconds words come, and the window in seconds."""
    secs, window = [*map(int, args), *(10, 5)[len(args) :]]
    builder = ss.TopologyBuilder()
    builder.set_spout("words", Words(secs))
    count = builder.set_bolt("count", RollingCount(window), 2).partial_key_grouping(
        "words", ["word"]
    )
    count.add_configuration("tick_tuple_freq_secs", 1)
    builder.set_bolt("add-up", AddUp(), 2).fields_grouping("count", ["word"])
    builder.set_bolt("rank", Rank(), 2).fields_grouping("add-up", ["word"])
    builder.set_bolt("merge", MergeRankings()).global_grouping("rank")
    return builder.create_topology()
