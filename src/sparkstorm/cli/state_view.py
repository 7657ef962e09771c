"""State on the screen: a table on a terminal, JSON lines otherwise."""

import json
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkstorm.cli.state import StateRow
from sparkstorm.dead_letters.values import to_json

__all__ = ["json_line", "show_rows"]

_MOST_ROWS = 1000
_LONGEST_CELL = 80


def show_rows(rows: Iterator[StateRow]) -> None:
    """Write all rows to stdout, or the first thousand if it is a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in rows:
            sys.stdout.write(json_line(row) + "\n")
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
        cells = (str(row.task), item.space, _short(repr(item.key)), _short(repr(item.value)))
        table.add_row(*map(Text, cells))
    console.print(table)
    if more:
        console.print(f"{more:,} more: pick some by --key, or send all to a file")


def json_line(row: StateRow) -> str:
    """Return a row as one line of JSON."""
    item = row.item
    facts = {
        "task": row.task,
        "state": item.space,
        "key": to_json(item.key),
        "value": to_json(item.value),
    }
    return json.dumps(facts, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
