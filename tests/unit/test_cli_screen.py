"""What a run shows on the terminal."""

import datetime
import json
from decimal import Decimal

import pytest

import sparkstorm as ss
from sparkstorm.cli.screen import Rate, Screen, progress_text
from sparkstorm.cli.summary import summary_facts, summary_table
from sparkstorm.metrics import Statistics, TaskMetrics
from sparkstorm.planning.plan import StreamKey
from sparkstorm.tasks.report import LogLine


def test_a_line_names_its_component_if_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A message may be lost without any component's doing."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout("book.txt"))
    screen = Screen(builder.create_topology())
    screen.log(LogLine("parse", 3, "warning", "odd"))
    screen.log(LogLine("", 0, "error", "lost"))
    assert capsys.readouterr().err.splitlines() == ["parse │ warning: odd", "error: lost"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({(0, 1): "x"}, {"(0, 1)": "x"}),
        ([{datetime.date(2026, 1, 2): Decimal(1)}], [{"2026-01-02": "1"}]),
        (({"a": {b"k": {frozenset(): None}}},), [{"a": {"b'k'": {"frozenset()": None}}}]),
        ({1: 2, None: True, "ž": (1,)}, {"1": 2, "null": True, "ž": [1]}),
    ],
)
def test_a_tap_writes_any_value(
    capsys: pytest.CaptureFixture[str], value: object, shown: object
) -> None:
    """A field may hold whatever can be pickled; dicts with any keys among it."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout("book.txt"))
    screen = Screen(builder.create_topology())
    screen.tap(StreamKey("lines", "default"), 0, [(value,)])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["values"] == {"sentence": shown}


class Parse(ss.BasicBolt):
    """Does nothing."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


def words() -> ss.Topology:
    """Build a topology of two tasks that read, and three that parse."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout("book.txt"), parallelism=2)
    builder.set_bolt("parse", Parse(), parallelism=3).shuffle_grouping("lines")
    return builder.create_topology()


def test_the_summary_says_of_spouts_only_what_they_do() -> None:
    """What became of their messages is in the line below; zeros beside it would deny that."""
    done = {"lines": {0: TaskMetrics(emitted=7)}, "parse": {1: TaskMetrics(executed=7, acked=7)}}
    statistics = Statistics(acked=7, batches=1, components=done)
    table = summary_table("words", statistics, 1.0, words())
    rows = zip(*(column.cells for column in table.columns), strict=True)
    assert [*rows] == [("lines", "2", "", "7", "", ""), ("parse", "3", "7", "0", "7", "0")]
    assert "7 tuples in 1 batch and 1.0 s" in str(table.caption)


def test_the_summary_counts_the_tasks_that_got_nothing() -> None:
    """And shows a component without a single tuple: there, perhaps, is the mistake."""
    facts = summary_facts("words", Statistics(), 1.0, words(), at_end=True)
    found = {name: (one["tasks"], one["executed"]) for name, one in facts["components"].items()}
    assert found == {"lines": (2, 0), "parse": (3, 0)}
    rows = [*summary_table("words", Statistics(), 1.0, words()).columns[0].cells]
    assert rows == ["lines", "parse"]


def test_numbers_agree_with_what_they_count() -> None:
    one = Statistics(given_up=1, dead_letters=1, replayed=2)
    assert "1 given up (1 dead letter)" in progress_text(one, 0.0)
    table = summary_table("words", one, 1.0, words())
    assert table.title == "words: 1 message given up"
    assert "1 dead letter, 2 dead letters replayed and acked" in str(table.caption)


def test_batches_that_were_rolled_back_are_counted() -> None:
    """Whoever asked for exactly once wants to know what it cost."""
    table = summary_table("words", Statistics(acked=7, batches=3, rollbacks=2), 1.0, words())
    assert "in 3 batches (2 rollbacks) and 1.0 s" in str(table.caption)


@pytest.mark.parametrize("every_secs", [0.2, 4.0, 10.0])
def test_the_rate_is_right_however_often_somebody_looks(every_secs: float) -> None:
    """Without a terminal a line comes every ten seconds."""
    rate = Rate()
    found = [rate.update(look * every_secs, round(look * every_secs * 100)) for look in range(30)]
    assert found[0] == 0
    assert found[1:] == pytest.approx([100] * 29)


def test_the_rate_falls_when_nothing_comes() -> None:
    """Old counts are forgotten after five seconds."""
    rate = Rate()
    for now in range(20):
        last = rate.update(float(now), min(now, 10) * 100)
    assert last == 0
