"""The screen of a run: progress and log lines on stderr, tapped tuples on stdout."""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from rich.console import RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from sparkstorm.cli.partition_table import partition_table
from sparkstorm.cli.summary import summary_table, tuples_of
from sparkstorm.cli.terminal import Terminal, write_json
from sparkstorm.metrics import Statistics
from sparkstorm.planning.plan import StreamKey
from sparkstorm.tasks.report import LINES, LogLine
from sparkstorm.texts.logs import logger_of
from sparkstorm.texts.showing import indented, shown, visible, visible_lines
from sparkstorm.texts.wording import counted
from sparkstorm.topology.graph import Topology

__all__ = ["NoteHandler", "Rate", "Screen", "listening", "progress_text"]

_LINE_SECS = 10.0
"""How often to write a progress line without a terminal."""

_LONG_SECS = 2.0
"""From when on the running batch is shown."""

_INDENT = "    "
"""Indents the further lines of a record, so that none can pass for a record of its own."""

_STYLES = {"warning": "yellow", "error": "red", "critical": "bold red", "debug": "dim"}


@final
class Screen:
    """The terminal, or the files and pipes behind the standard streams.

    The engine's threads call ``tap`` and ``log``.
    """

    def __init__(self, topology: Topology) -> None:
        self.err = Terminal(stderr=True, soft_wrap=True)
        self.out = Terminal(soft_wrap=True)
        self.reader_gone = False
        self._topology = topology
        self._rate = Rate()
        self._started = self._last_line = time.monotonic()
        self._status = ""
        self._live: Live | None = None
        self.statistics: Callable[[], Statistics] | None = None
        """Tells how the run stands, once there is one."""

    @property
    def secs(self) -> float:
        """The seconds since the screen was made."""
        return time.monotonic() - self._started

    def status(self, text: str) -> None:
        """Show the run's current step, with the seconds so far."""
        self._status = text
        if self._live is None:
            self.err.print(Text(visible(f"{self.secs:6.1f} s  {text}"), style="dim"))

    @contextmanager
    def live(self) -> Iterator[None]:
        """Draw the progress while the context lasts, if there is a terminal."""
        if not self.err.is_terminal:
            yield
            return
        spinner = Spinner("dots")

        def draw() -> RenderableType:
            spinner.update(text=Text(self._progress()))
            return spinner

        self._live = Live(
            get_renderable=draw,
            console=self.err,
            refresh_per_second=5,
            transient=True,
            redirect_stdout=False,
        )
        with self._live:
            yield

    def still(self) -> None:
        """Draw no more progress: the run has ended."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tick(self) -> None:
        """Write a line now and then, if there is no terminal."""
        now = time.monotonic()
        if not self.err.is_terminal and now - self._last_line >= _LINE_SECS:
            self._last_line = now
            self.err.print(self._progress())

    def tap(self, key: StreamKey, task: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Show tuples that a tapped component emitted."""
        names = self._topology.components[key.component].streams[key.stream].names
        for row in rows:
            values = dict(zip(names, row, strict=True))
            if self.out.is_terminal:
                self._show_tuple(key, values)
            else:
                where = {"component": key.component, "stream": key.stream, "task": task}
                self._write({**where, "values": values})
        if not self.out.is_terminal:
            self._flush()

    def log(self, line: LogLine) -> None:
        """Show a line printed or logged by a component."""
        style = _STYLES.get(line.level, "")
        level = f"{line.level}: " if line.level not in ("print", "info") else ""
        where = visible(f"{line.component} │ ") if line.component else ""
        text = visible(level + line.text)
        if line.trace:
            text += f"\n{indented(line.trace)}"
        self.err.print(Text.assemble((where, "cyan"), (text, style)))

    def note(self, level: str, text: str) -> None:
        """Show a record of the engine's own, or of a library's; further lines are indented."""
        lines = visible_lines(f"{level}: {text}", _INDENT)
        self.err.print(Text(lines, style=_STYLES.get(level, "")))

    def summary(
        self, name: str, statistics: Statistics, letters_at: str = "", *, at_end: bool = True
    ) -> None:
        """Show the end of a run.

        Args:
            name: the topology's name.
            statistics: the last statistics.
            letters_at: the options that lead to the dead letters.
            at_end: whether the sources had nothing more.
        """
        table = summary_table(name, statistics, self.secs, self._topology, at_end=at_end)
        self.err.print(table)
        for spout, partitions in sorted(statistics.partitions.items()):
            if partitions:
                self.err.print(partition_table(spout, partitions))
        if statistics.dead_letters:
            self.err.print(visible(f"look at them: sparkstorm dead-letters list {letters_at}"))

    def _progress(self) -> str:
        line = f"{self.secs:6.1f} s  {self._status}"
        if self.statistics is None:
            return line
        statistics = self.statistics()
        rate = self._rate.update(time.monotonic(), tuples_of(statistics))
        return f"{line}: {progress_text(statistics, rate)}"

    def _show_tuple(self, key: StreamKey, values: dict[str, Any]) -> None:
        stream = "" if key.stream == "default" else f"/{key.stream}"
        text = "  ".join(f"{name}={shown(value)}" for name, value in values.items())
        # The live display draws on stderr, so the same console keeps tuples above it.
        console = self.err if self.err.is_terminal else self.out
        where = visible(f"{key.component}{stream} → ")
        console.print(Text.assemble((where, "green"), visible(text)))

    def _write(self, line: dict[str, Any]) -> None:
        if not self.reader_gone:
            try:
                write_json(line, flush=False)
            except BrokenPipeError:
                self.reader_gone = True

    def _flush(self) -> None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self.reader_gone = True


@final
class NoteHandler(logging.Handler):
    """The handler that shows Python's log records on the screen."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record."""
        line = getattr(record, "line", None)
        if isinstance(line, LogLine):
            self._screen.log(line)
        else:
            self._screen.note(record.levelname.lower(), self.format(record))


@contextmanager
def listening(screen: Screen, *, verbose: bool = False) -> Iterator[None]:
    """Lead Python's logging to the screen: components' lines and our warnings.

    With ``verbose`` all records of all loggers, from level INFO on.
    """
    root, ours, lines = logging.getLogger(), logger_of("sparkstorm"), logger_of(LINES)
    levels = [(logger, logger.level) for logger in (ours, lines)]
    quiet, handler = logging.NullHandler(), NoteHandler(screen)
    target = root if verbose else ours
    # Without any handler Python would print warnings of libraries by itself.
    root.addHandler(quiet)
    target.addHandler(handler)
    # Every line of a component is shown: a print has only the level INFO.
    lines.setLevel(logging.DEBUG)
    if verbose:
        ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(quiet)
        target.removeHandler(handler)
        for logger, level in levels:
            logger.setLevel(level)


def progress_text(statistics: Statistics, rate: float) -> str:
    """Return the counts as one line.

    >>> progress_text(Statistics(acked=1200, pending=3, batches=9, batch_secs=0.5), 25_000)
    '1,200 acked  0 failed  3 pending  25,000 tuples/s  last batch 0.50 s'
    >>> progress_text(Statistics(pending=3, running_batch=0, running_secs=4.2), 0)
    '0 acked  0 failed  3 pending  0 tuples/s  batch 0 runs for 4.2 s'
    """
    given_up = f"  {statistics.given_up:,} given up" if statistics.given_up else ""
    if statistics.dead_letters:
        given_up += f" ({counted(statistics.dead_letters, 'dead letter')})"
    if statistics.rollbacks:
        given_up += f"  {counted(statistics.rollbacks, 'rollback')}"
    return (
        f"{statistics.acked:,} acked  {statistics.failed:,} failed  {statistics.pending:,} pending"
        f"{given_up}  {rate:,.0f} tuples/s{_last_batch(statistics)}{_running(statistics)}"
    )


def _last_batch(statistics: Statistics) -> str:
    return f"  last batch {statistics.batch_secs:.2f} s" if statistics.batches else ""


def _running(statistics: Statistics) -> str:
    """Return the running batch, if it takes long enough for people to wonder."""
    if statistics.running_batch is None or statistics.running_secs < _LONG_SECS:
        return ""
    return f"  batch {statistics.running_batch} runs for {statistics.running_secs:.1f} s"


class Rate:
    """A rate over the last five seconds, or since the last look if that is longer ago."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def update(self, now: float, count: int) -> float:
        """Add a count; return its recent growth per second."""
        self._seen = [seen for seen in self._seen if now - seen[0] < 5.0] or self._seen[-1:]
        self._seen.append((now, count))
        start, before = self._seen[0]
        return (count - before) / (now - start) if now - start > 0.1 else 0.0
