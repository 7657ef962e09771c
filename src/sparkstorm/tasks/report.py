"""What tasks tell the driver beside their packets: counts, prints and logs.

A report may arrive twice or never (Spark's accumulators), so nothing depends on it but what people
see.
"""

import contextlib
import io
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import final

from sparkstorm.metrics import TaskMetrics

__all__ = ["LogLine", "Report", "capture_prints", "newest"]

_MAX_LINES = 1000
"""Lines that one task may log in one batch; more are counted, not kept."""

_MAX_CHARS = 200_000
"""Characters of all of them; a line that is longer than what is left keeps its beginning."""


@final
@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a component printed or logged, as it was: it may hold anything.

    Attributes:
        component: the component, or an empty text if there is none.
        task: its task.
        level: the name of a level of Python's logging, or ``print``.
        text: the line.
        trace: the traceback that was logged with it.
    """

    component: str
    task: int
    level: str
    text: str
    trace: str = ""


@final
@dataclass(slots=True)
class Report:
    """What one task has to tell about one batch; a spout's task, about one load (``lane``).

    ``dropped`` lines found no ``room``, which is counted in characters, or were too many.
    """

    component: str
    task: int
    lane: int = 0
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    lines: list[LogLine] = field(default_factory=list)
    dropped: int = 0
    room: int = _MAX_CHARS

    def log(self, level: str, text: str, trace: str = "") -> None:
        """Keep a line, or count it if there are too many."""
        if len(self.lines) >= _MAX_LINES or not self.room:
            self.dropped += 1
            return
        kept = text[: self.room]
        self.room -= len(kept)
        if len(kept) < len(text):
            kept += f"… ({len(text):,} characters)"
        self.lines.append(LogLine(self.component, self.task, level, kept, trace))

    def finish(self) -> None:
        """Add a line that says how many were dropped."""
        if self.dropped:
            text = f"… and {self.dropped} more lines in this batch"
            self.lines.append(LogLine(self.component, self.task, "warning", text))
            self.dropped = 0


def newest(reports: Iterable[Report]) -> list[Report]:
    """Return of each task the last report: a task that was run again is told of once."""
    return list({(r.component, r.task, r.lane): r for r in reports}.values())


@contextlib.contextmanager
def capture_prints(report: Report) -> Iterator[None]:
    """Turn what is printed and logged within into lines of the report."""
    writer = _LineWriter(report)
    handler = _ReportHandler(report)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(min(level, logging.INFO) if level else logging.INFO)
    try:
        with contextlib.redirect_stdout(writer), contextlib.redirect_stderr(writer):
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        writer.close()


class _LineWriter(io.TextIOBase):
    """A text file whose lines go to a report."""

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
    """Logging into a report."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self.format(record)  # which also makes the text of a traceback
        self._report.log(record.levelname.lower(), record.message, record.exc_text or "")
