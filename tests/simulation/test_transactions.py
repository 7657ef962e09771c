"""Exactly once under every fault that the simulation knows: the sink and the state agree."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.testing import Faults, LogSpout, MemorySink, Outcome, simulate

ROWS = [[f"w{n % 4}", n] for n in range(24)]
ONCE = ss.Config(
    processing_guarantee="exactly-once",
    batch_min_messages=6,
    batch_max_messages=6,
    retry_backoff_secs=0.1,
    max_retries=3,
)


class Count(ss.StatefulBolt):
    """Counts words; some numbers fail at first, some always."""

    outputs = "word string, number long, count long"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["word"], 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], tup["number"], count], anchors=tup)
        if tup["number"] % 12 == 7 or (tup["number"] % 6 == 2 and tup.attempt < 3):
            self.collector.fail(tup, "not yet")
        else:
            self.collector.ack(tup)


def play(sink: ss.CommitterBolt, seed: int, faults: Faults | None = None) -> Outcome:
    """Run it."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", LogSpout(ROWS, "word string, number long", split_rows=3), 2)
    builder.set_bolt("count", Count(), 2).fields_grouping("words", "word")
    builder.set_bolt("sink", sink, 2).shuffle_grouping("count")
    return simulate(builder.create_topology(), seed=seed, faults=faults, config=ONCE)


def check(sink: MemorySink, outcome: Outcome) -> None:
    """Each acked message is in the sink once and in the state once, no other is in either."""
    acked = sorted(number for _, number in outcome.acked)
    assert len(acked) == len(set(acked))
    assert sorted(number for _, number, _ in sink.rows) == acked
    assert outcome.state["count"] == Counter(ROWS[number][0] for number in acked)
    counts: dict[str, list[int]] = {}
    for word, _, count in sink.rows:
        counts.setdefault(word, []).append(count)
    for of_one in counts.values():  # as they were counted, step by step
        assert sorted(of_one) == list(range(1, len(of_one) + 1))


@pytest.mark.parametrize("seed", range(10))
def test_crashes_at_every_moment(seed: int) -> None:
    """Between the plan, the job, the decision, the transaction and the commit."""
    sink = MemorySink()
    outcome = play(sink, seed, Faults.only(crash=0.15))
    check(sink, outcome)
    assert sorted(number for _, number in outcome.given_up) == [7, 19]


@settings(max_examples=settings().max_examples // 3)
@given(st.integers(0, 1 << 32))
def test_all_faults_together(seed: int) -> None:
    """Lost and doubled packets, repeated tasks, lost jobs and outcomes, and crashes."""
    sink = MemorySink()
    check(sink, play(sink, seed))
