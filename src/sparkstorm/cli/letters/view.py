"""The view of dead letters: a table of many, a page for one."""

import datetime
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sparkstorm.cli.terminal import Terminal
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.texts.showing import as_json, indented, shown, visible
from sparkstorm.texts.wording import counted

__all__ = ["letter_page", "letters_table", "show_plainly"]

_ID_CHARS = 10
_LONGEST_CELL = 60


def letters_table(letters: Sequence[DeadLetter], now: float) -> Table:
    """Return a table with a line for each letter."""
    table = Table(title=counted(len(letters), "dead letter"), title_justify="left")
    table.add_column("id", no_wrap=True)
    for column in ("age", "topology", "spout", "message"):
        table.add_column(column)
    table.add_column("tries", justify="right")
    for column in ("reason", "failed in", "why"):
        table.add_column(column)
    for letter in letters:
        cells = (
            letter.id[:_ID_CHARS],
            age_text(now - letter.last_time),
            letter.topology,
            letter.spout,
            _short(shown(letter.msg_id)),
            f"{letter.attempts:,}",
            letter.failure.reason.value,
            letter.failure.component,
            _short(letter.failure.message),
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def letter_page(letter: DeadLetter) -> RenderableType:
    """Return a page with all facts of one letter."""
    table = Table.grid(padding=(0, 2))
    for name, value in _facts(letter):
        table.add_row(Text(name, style="bold"), Text(visible(value)))
    parts: list[RenderableType] = [table]
    if letter.failure.traceback:
        trace = indented(letter.failure.traceback)
        parts += [Text("\ntraceback", style="bold"), Text(trace)]
    parts.append(Text("\npayload", style="bold"))
    if letter.payload is None:
        parts.append(Text(visible(letter.note or "not known")))
    else:
        payload = Table.grid(padding=(0, 2))
        for name, value in letter.payload.items():
            payload.add_row(Text(visible(name)), Text(visible(repr(value))))
        parts.append(payload)
    if letter.replayable:
        hint = f"\nstop where it fails: sparkstorm debug {letter.id[:_ID_CHARS]} TOPOLOGY.py"
        parts.append(Text(hint, style="dim"))
    if not letter.replayable and letter.payload is not None:
        parts.append(Text("It cannot be replayed: some values could not be written as JSON."))
    return Group(*parts)


def show_plainly(renderable: RenderableType) -> None:
    """Write to stdout; without a terminal, lines may be of any length."""
    console = Terminal()
    if not console.is_terminal:
        # A pipe has no width of its own, and Rich would cut cells at 80 columns.
        console = Terminal(width=max(console.width, 240))
    console.print(renderable)


def age_text(secs: float) -> str:
    """Return an age in the largest unit that fits, in the form of the filters.

    >>> age_text(42), age_text(7300), age_text(400_000)
    ('42s', '2h', '4d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if secs >= size:
            return f"{int(secs // size)}{unit}"
    return f"{max(0, int(secs))}s"


def _facts(letter: DeadLetter) -> list[tuple[str, str]]:
    failure = letter.failure
    where = f" in {failure.component} (task {failure.task})" if failure.component else ""
    facts = [
        ("id", letter.id),
        ("topology", f"{letter.topology} (run {letter.run})" if letter.run else letter.topology),
        ("spout", f"{letter.spout}, its task {letter.task}, stream {letter.stream}"),
        ("message", repr(letter.msg_id)),
        ("reason", f"{failure.reason.value}{where}"),
        ("why", failure.message),
        ("attempts", f"{letter.attempts:,}, replayed {letter.replays:,} times"),
        ("first attempt", _moment(letter.first_time)),
        ("last failure", _moment(letter.last_time)),
    ]
    if letter.source is not None:
        facts.insert(4, ("source", as_json(letter.to_json()["source"])))
    return facts


def _moment(secs: float) -> str:
    moment = datetime.datetime.fromtimestamp(secs, datetime.UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
