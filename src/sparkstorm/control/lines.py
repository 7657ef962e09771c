"""Lines: the last log lines of a running topology's components."""

import logging
import threading
import time
from collections import deque
from typing import final

from sparkstorm.control.views import LineView
from sparkstorm.errors import ConfigError
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.report import HEARERS, LINES, LogLine
from sparkstorm.texts.logs import logger_of

__all__ = ["LastLines"]

_MOST = 2_000


@final
class LastLines:
    """Keeps the last lines that components printed or logged, while it is attached."""

    def __init__(self) -> None:
        self._lines: deque[LineView] = deque(maxlen=_MOST)
        self._guard = threading.Lock()

    def attach(self) -> None:
        """Hear of lines from now on."""
        HEARERS.append(self._hear)

    def detach(self) -> None:
        """Hear of no more lines."""
        HEARERS.remove(self._hear)

    def _hear(self, line: LogLine) -> None:
        view = LineView(
            at=time.time(),
            component=line.component,
            task=line.task,
            level=line.level,
            text=line.text,
            trace=line.trace,
            message=line.message,
            name=line.name,
            attempt=line.attempt,
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
        logger_of(f"{LINES}.{component}").setLevel(level.upper())

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
            and message in (None, line.message, line.name)
            and logging.getLevelNamesMapping().get(line.level.upper(), logging.INFO) >= least
        ]
        return found[-limit:] if limit > 0 else []
