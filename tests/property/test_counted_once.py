"""Metrics beside a naive model: each committed batch counts once, however often it was run."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.metrics import InputMetrics, OutputMetrics
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.testing import LocalRunner, ManualClock

histories = st.lists(
    st.tuples(st.lists(st.sampled_from(["a", "b c", "a bad", ""]), max_size=4), st.integers(0, 3)),
    max_size=4,
)
"""For each batch its lines, and how often it is run in vain before it is committed."""


class Lines(ReplayingSpout):
    """Emits lines, as the test feeds them."""

    outputs = "line string"

    def next_message(self) -> tuple[str, list[Any]] | None:
        if not FED:
            return None
        name, line = FED.pop(0)
        return name, [line]


FED: list[tuple[str, str]] = []


class Split(ss.BasicBolt):
    """Cuts a line into words, and counts them."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["line"].split():
            collector.emit([word])
            self.context.count("words")


class Refuse(ss.BasicBolt):
    """Fails on one word."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["word"] == "bad":
            raise ValueError("bad")


def topology() -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("lines")
    builder.set_bolt("refuse", Refuse(), 3).fields_grouping("split", ["word"])
    return builder.create_topology()


@settings(deadline=None)
@given(histories)
def test_a_batch_counts_once_however_often_it_was_run(
    history: list[tuple[list[str], int]],
) -> None:
    """By component and stream; failures by reason; latencies; the user's own counters."""
    FED.clear()
    lines: list[str] = []
    with LocalRunner(topology(), config=ss.Config(max_retries=0), clock=ManualClock()) as runner:
        for batch, repeats in history:
            FED.extend((f"{len(lines) + n}", line) for n, line in enumerate(batch))
            lines += batch
            runner.ask_spouts()
            if runner.plan_batch():
                for _ in range(repeats):  # Spark could not commit
                    runner.finish(runner.run_job())
                    runner.roll_back()
                assert runner.finish(runner.run_job())
                runner.commit()
        statistics = runner.run_until_idle()
        windows = [runner.coordinator.window(secs) for secs in (600, 10_800, 86_400, None)]
    words = Counter(word for line in lines for word in line.split())
    bad = sum("bad" in line for line in lines)
    split, refuse = statistics.component("split"), statistics.component("refuse")
    assert (split.executed, split.acked) == (len(lines), len(lines))
    assert dict(split.user).get("words", 0) == words.total()
    wanted = OutputMetrics(emitted=words.total(), transferred=words.total())
    assert split.outputs.get("default", OutputMetrics()) == wanted
    read = refuse.inputs.get(("split", "default"), InputMetrics())
    assert (read.executed, read.acked, read.failed) == (words.total(), words.total() - bad, bad)
    assert (read.execute.count, read.process.count) == (words.total(), words.total() - bad)
    assert dict(refuse.failures) == ({"error": bad} if bad else {})
    spout = statistics.component("lines")
    assert (spout.acked, spout.failed, spout.complete.count) == (
        len(lines) - bad,
        bad,
        len(lines) - bad,
    )
    assert statistics.dead_letters == bad
    for window in windows:
        for name in ("lines", "split", "refuse") if lines else ():
            assert window.components.get(name) in (None, statistics.component(name))
            mine = [one for (component, _), one in window.tasks.items() if component == name]
            assert sum(one.executed for one in mine) == statistics.component(name).executed
