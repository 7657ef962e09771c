"""The view of state: a table on a terminal, JSON lines otherwise."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from sparkstorm.cli.state.commands import StateRow
from sparkstorm.cli.terminal import Terminal, write_json
from sparkstorm.dead_letters.values import to_json
from sparkstorm.texts.showing import shown, visible

__all__ = ["json_facts", "show_rows"]

_MOST_ROWS = 1000
_LONGEST_CELL = 80


def show_rows(rows: Iterator[StateRow]) -> None:
    """Write all rows to stdout, or the first thousand on a terminal."""
    console = Terminal()
    if not console.is_terminal:
        for row in rows:
            write_json(json_facts(row), flush=False)
        return
    table = Table()
    table.add_column("task", justify="right")
    for column in ("state", "key", "value"):
        table.add_column(column)
    more = 0
    for row in rows:
        if table.row_count == _MOST_ROWS:
            more += 1
            continue
        item = row.item
        texts = (visible(item.space), *(shown(it, _LONGEST_CELL) for it in (item.key, item.value)))
        table.add_row(str(row.task), *map(Text, texts))
    console.print(table)
    if more:
        console.print(f"{more:,} more: pick some by --key, or send all to a file")


def json_facts(row: StateRow) -> dict[str, Any]:
    """Return a row as JSON types."""
    item = row.item
    return {
        "task": row.task,
        "state": item.space,
        "key": to_json(item.key),
        "value": to_json(item.value),
    }
