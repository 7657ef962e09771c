"""The partition table: the progress of a spout's partitions, for the summary."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sparkstorm.metrics import PartitionStatistics
from sparkstorm.texts.showing import visible

__all__ = ["partition_table"]

_ALWAYS = ("lag", "committed")
_IF_ANY = ("acked_beyond", "in_flight", "in_retry", "dead_letters", "skipped", "expired")

_MOST_ROWS = 20
_MOST_TEXT = 100
"""The most characters of a reason; the dead letter, or the log, has all of it."""


def partition_table(spout: str, partitions: Sequence[PartitionStatistics]) -> Table:
    """Return the table of a spout; of many partitions the furthest behind.

    A column of zeros is left out. The caption says why partitions wait.
    """
    behind = sorted(partitions, key=lambda one: (-one.lag, one.partition))[:_MOST_ROWS]
    shown = [one for one in partitions if one in behind]
    columns = [*_ALWAYS, *(name for name in _IF_ANY if any(getattr(p, name) for p in partitions))]
    table = Table(
        title=f"partitions of {visible(spout)}", title_justify="left", caption_justify="left"
    )
    table.add_column("")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for one in shown:
        table.add_row(visible(one.partition), *(f"{getattr(one, column):,}" for column in columns))
    left = len(partitions) - len(shown)
    notes = [f"and {left:,} more, which are less far behind"] if left else []
    notes += filter(None, map(_waiting, shown))
    if notes:  # unbroken, so that no reason can be made to begin a line
        table.caption = Text("\n".join(notes), no_wrap=True, overflow="ignore")
    return table


def _waiting(one: PartitionStatistics) -> str:
    """Return what holds back a partition's commit, as a sentence."""
    if one.oldest is None:
        return ""
    why = visible(one.held_why.partition("\n")[0], _MOST_TEXT)
    failed = f", which failed in {one.held_by}: {why}" if one.held_by else ""
    paused = "; it is paused until then" if one.paused else ""
    return visible(f"{one.partition} waits for {one.oldest:,}{failed}{paused}")
