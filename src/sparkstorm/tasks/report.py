"""Reports: counts, prints and log lines that tasks tell the driver beside their packets.

A report may arrive twice or never (Spark's accumulators). So nothing depends on reports but the
views of people.
"""

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import final

from sparkstorm.control.views import LineView, NodeView
from sparkstorm.metrics import TaskMetrics
from sparkstorm.texts.logs import logger_of
from sparkstorm.texts.showing import indented, visible

__all__ = [
    "HEARERS",
    "LINES",
    "LogLine",
    "Report",
    "capture_prints",
    "level_number",
    "log_line",
    "newest",
]

LINES = "sparkstorm.topology"
"""The parent of the loggers of components."""

_MAX_LINES = 1000
"""The most lines of a task in a batch; further lines are only counted."""

_MAX_CHARS = 200_000
"""The most characters of all lines together; the last line keeps its beginning."""


@final
@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a component printed or logged, unchanged: the line may hold anything.

    Attributes:
        component: the component; empty if there is none.
        task: the component's task.
        level: the name of a level of Python's logging, or ``print``.
        text: the line.
        trace: the traceback logged with the line.
        root: the root of the message whose tuple was being executed; None outside of ``execute``.
        attempt: the number of that message's attempt.
        topology: the topology's name; the driver sets it, as the next two.
        message: the message's id.
        name: the spout's own name for the message.
    """

    component: str
    task: int
    level: str
    text: str
    trace: str = ""
    root: int | None = None
    attempt: int | None = None
    topology: str = ""
    message: str = ""
    name: str = ""

    def view(self, now: float) -> LineView:
        """Return the line for people, as it is heard of now."""
        return LineView(
            at=now,
            component=self.component,
            task=self.task,
            level=self.level,
            text=self.text,
            trace=self.trace,
            message=self.message,
            name=self.name,
            attempt=self.attempt,
        )


HEARERS: list[Callable[[LogLine], None]] = []
"""Hear of each line of this process's runs, beside the loggers, from the line's level on."""


def log_line(line: LogLine) -> None:
    """Log a component's line in the driver, by the logger ``sparkstorm.topology.COMPONENT``.

    A printed line has the level INFO. Handlers find the whole :class:`LogLine` as ``record.line``,
    and its parts as ``record.topology``, ``component``, ``task``, ``message_id``, ``message_name``
    and ``attempt``.
    Without any handler the line goes to stderr.
    """
    level = level_number(line.level)
    logger = logger_of(f"{LINES}.{line.component}" if line.component else LINES)
    if level >= _least_level(logger):
        for hear in HEARERS:
            hear(line)
    if logger.hasHandlers():
        logger.log(level, "%s", line.text, extra=_extra(line))
    elif level >= _least_level(logger):
        _show(line)


def level_number(level: str) -> int:
    """Return the number of a line's level; a printed line has the level INFO."""
    return logging.getLevelNamesMapping().get(level.upper(), logging.INFO)


def _extra(line: LogLine) -> dict[str, object]:
    return {
        "line": line,
        "trace": line.trace,
        "topology": line.topology,
        "component": line.component,
        "task": line.task,
        "message_id": line.message,
        "message_name": line.name,
        "attempt": line.attempt,
    }


def _least_level(logger: logging.Logger) -> int:
    """Return the level that the program set; the root's default would hide whatever is printed."""
    while logger.parent is not None:
        if logger.level:
            return logger.level
        logger = logger.parent
    return logging.INFO


def _show(line: LogLine) -> None:
    """Write a line for a program that sets up no logging; Python itself shows warnings alone."""
    text = f"{visible(line.component)}: " if line.component else ""
    text += visible(line.text)
    if line.trace:
        text += f"\n{indented(line.trace)}"
    with contextlib.suppress(OSError):  # nobody may read stderr any more
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@final
@dataclass(slots=True)
class Report:
    """A task's report on a batch; a spout task's report on a load (``lane``).

    Attributes:
        traces: tuples of traced roots, each with its root.
        dropped: the number of lines beyond the bounds.
        room: the characters left for lines.
        least: the level of ``logging`` from which on lines are kept.
        running: returns the root and the attempt of the message whose tuple is being executed.
    """

    component: str
    task: int
    lane: int = 0
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    lines: list[LogLine] = field(default_factory=list)
    traces: list[tuple[int, NodeView]] = field(default_factory=list)
    dropped: int = 0
    room: int = _MAX_CHARS
    least: int = logging.INFO
    running: Callable[[], tuple[int, int] | None] | None = None

    def log(self, level: str, text: str, trace: str = "") -> None:
        """Keep a line of a high enough level, or count the line if there are too many."""
        if level_number(level) < self.least:
            return
        # A bolt that prints each tuple must not fill the driver's memory.
        if len(self.lines) >= _MAX_LINES or not self.room:
            self.dropped += 1
            return
        kept = text[: self.room]
        self.room -= len(kept)
        if len(kept) < len(text):
            kept += f"… ({len(text):,} characters)"
        root, attempt = (self.running and self.running()) or (None, None)
        self.lines.append(LogLine(self.component, self.task, level, kept, trace, root, attempt))

    def finish(self) -> None:
        """Add a line with the number of dropped lines; no tuple is executed any more."""
        self.running = None
        if self.dropped:
            text = f"… and {self.dropped} more lines in this batch"
            self.lines.append(LogLine(self.component, self.task, "warning", text))
            self.dropped = 0


def newest(reports: Iterable[Report]) -> list[Report]:
    """Return each task's last report, so a repeated task is told once."""
    return list({(r.component, r.task, r.lane): r for r in reports}.values())


@contextlib.contextmanager
def capture_prints(report: Report) -> Iterator[None]:
    """Turn prints and logs within the block into lines of the report."""
    writer = _LineWriter(report)
    handler = _ReportHandler(report)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    # Bolts log at INFO; the root logger of a worker starts at WARNING.
    root.setLevel(min(level or logging.INFO, logging.INFO, report.least))
    try:
        with contextlib.redirect_stdout(writer), contextlib.redirect_stderr(writer):
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        writer.close()


class _LineWriter(io.TextIOBase):
    """A text file that writes its lines to a report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._report.log("print", line)
        return len(text)

    def close(self) -> None:
        if self._rest:
            self._report.log("print", self._rest)
            self._rest = ""
        super().close()


class _ReportHandler(logging.Handler):
    """A logging handler that writes to a report."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self.addFilter(_is_not_of_py4j)

    def emit(self, record: logging.LogRecord) -> None:
        self.format(record)  # fills record.message and the text of the traceback
        self._report.log(record.levelname.lower(), record.message, record.exc_text or "")


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a bolt may have logged this.

    Where a process has a Spark session besides, py4j logs its talk with Java at DEBUG, also in the
    middle of a bolt: each Python object that goes is told to Java.
    """
    return record.name.partition(".")[0] != "py4j"
