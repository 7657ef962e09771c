"""Lines: the last log lines of a running topology's components."""

import logging
import threading
from collections import deque
from typing import final

from sparkstorm.control.views import LineView
from sparkstorm.errors import ConfigError
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.report import LINES, LogLine

__all__ = ["LastLines"]

_MOST = 2_000


@final
class LastLines(logging.Handler):
    """Keeps the last lines that components printed or logged, while it is attached."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[LineView] = deque(maxlen=_MOST)
        self._guard = threading.Lock()

    def attach(self) -> None:
        """Hear of lines from now on."""
        logging.getLogger(LINES).addHandler(self)

    def detach(self) -> None:
        """Hear of no more lines."""
        logging.getLogger(LINES).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record's line."""
        line = getattr(record, "line", None)
        if isinstance(line, LogLine):
            view = LineView(
                at=record.created,
                component=line.component,
                task=line.task,
                level=line.level,
                text=line.text,
                trace=line.trace,
            )
            with self._guard:
                self._lines.append(view)

    def set_level(self, plan: Plan, component: str, level: str) -> None:
        """Let a component log from a level of Python's ``logging`` on.

        Raises:
            ConfigError: there is no such component, or no such level.
        """
        if component not in plan.topology.components:
            raise ConfigError(f"there is no component {component!r}")
        if level.upper() not in logging.getLevelNamesMapping():
            raise ConfigError(f"there is no level {level!r}: write DEBUG, INFO, WARNING or ERROR")
        logging.getLogger(f"{LINES}.{component}").setLevel(level.upper())

    def last(
        self, component: str | None, message: str | None, level: str | None, limit: int
    ) -> list[LineView]:
        """Return the last lines that pass the filters, the oldest first."""
        with self._guard:
            lines = list(self._lines)
        least = logging.getLevelNamesMapping().get((level or "NOTSET").upper(), 0)
        found = [
            line
            for line in lines
            if component in (None, line.component)
            and (message is None or message == line.message or message in line.text)
            and logging.getLevelNamesMapping().get(line.level.upper(), logging.INFO) >= least
        ]
        return found[-limit:] if limit > 0 else []
