"""The partitions of a spout, as they are shown when a run ends."""

import pytest
from rich.table import Table

import sparkstorm as ss
from sparkstorm.cli.partition_table import partition_table
from sparkstorm.cli.screen import Screen
from sparkstorm.metrics import PartitionStatistics, Statistics


def headings(table: Table) -> list[str]:
    """What stands above its columns."""
    return [str(column.header) for column in table.columns]


def cells(table: Table) -> list[tuple[str, ...]]:
    """Its rows."""
    return [*zip(*(map(str, column.cells) for column in table.columns), strict=True)]


def test_partitions_are_shown_with_what_there_is_to_say() -> None:
    """No columns of zeros, and below the table what each of them waits for."""
    done = PartitionStatistics(partition="orders/0", committed=1200, skipped=3)
    table = partition_table("in", [done])
    assert headings(table) == ["", "lag", "committed", "skipped"]
    assert cells(table) == [("orders/0", "0", "1,200", "3")]
    assert table.caption is None
    stuck = PartitionStatistics(
        partition="orders/1",
        lag=1030,
        committed=7,
        acked_beyond=1029,
        in_retry=1,
        oldest=7,
        held_by="enrich",
        held_why="ValueError: no such customer\nlong story",
        paused=True,
    )
    table = partition_table("in", [done, stuck])
    assert headings(table) == ["", "lag", "committed", "acked beyond", "in retry", "skipped"]
    assert cells(table)[1] == ("orders/1", "1,030", "7", "1,029", "1", "0")
    assert str(table.caption) == (
        "orders/1 waits for 7, which failed in enrich: ValueError: no such customer; it is paused "
        "until then"
    )


def test_old_figures_and_pauses_are_said_to_be() -> None:
    """A lag of 0 tells nothing if nobody has answered for a minute."""
    one = PartitionStatistics(
        partition="t/0", lag=5, lag_secs=12.4, seen_secs=61.0, log_cuts=1, halted=True
    )
    table = partition_table("in", [one])
    assert headings(table) == ["", "lag", "committed", "lag secs", "log cuts"]
    assert cells(table) == [("t/0", "5", "0", "12", "1")]
    assert str(table.caption) == (
        "t/0 is paused by the user\nthe source has not answered for 61 s: lags are as of then"
    )


def test_of_many_partitions_those_far_behind_are_shown() -> None:
    """In their own order."""
    many = [PartitionStatistics(partition=f"t/{n:02}", lag=n) for n in range(50)]
    table = partition_table("in", many)
    assert [row[0] for row in cells(table)] == [f"t/{n}" for n in range(30, 50)]
    assert str(table.caption) == "and 30 more, which are less far behind"


def test_the_summary_shows_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout("book.txt"))
    screen = Screen(builder.create_topology())
    stand = (PartitionStatistics(partition="book.txt", committed=9),)
    screen.summary("words", Statistics(partitions={"lines": stand, "other": ()}))
    told = capsys.readouterr().err
    assert "partitions of lines" in told
    assert "book.txt" in told
    assert "other" not in told
