"""What a run shows on the terminal."""

import pytest

import sparkstorm as ss
from sparkstorm.cli.screen import Screen, progress_text, summary_table
from sparkstorm.execution.report import LogLine
from sparkstorm.metrics import Statistics, TaskMetrics


def test_a_line_names_its_component_if_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A message may be lost without any component's doing."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout("book.txt"))
    screen = Screen(builder.create_topology())
    screen.log(LogLine("parse", 3, "warning", "odd"))
    screen.log(LogLine("", 0, "error", "lost"))
    assert capsys.readouterr().err.splitlines() == ["parse │ warning: odd", "error: lost"]


def test_the_summary_says_of_spouts_only_what_they_do() -> None:
    """What became of their messages is in the line below; zeros beside it would deny that."""
    done = {"lines": {0: TaskMetrics(emitted=7)}, "parse": {1: TaskMetrics(executed=7, acked=7)}}
    statistics = Statistics(acked=7, batches=1, components=done)
    table = summary_table("words", statistics, 1.0, spouts=["lines"])
    rows = zip(*(column.cells for column in table.columns), strict=True)
    assert [*rows] == [("lines", "1", "", "7", "", ""), ("parse", "1", "7", "0", "7", "0")]
    assert "7 tuples in 1 batch and 1.0 s" in str(table.caption)


def test_numbers_agree_with_what_they_count() -> None:
    one = Statistics(given_up=1, dead_letters=1, replayed=2)
    assert "1 given up (1 dead letter)" in progress_text(one, 0.0)
    table = summary_table("words", one, 1.0)
    assert table.title == "words: 1 message given up"
    assert "1 dead letter, 2 dead letters replayed and acked" in str(table.caption)
