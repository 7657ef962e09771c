"""Lines: the last log lines of a running topology's components."""

import threading
import time
from collections import deque
from itertools import chain, count
from operator import itemgetter
from typing import final

from sparkstorm.control.views import LineView
from sparkstorm.tasks.report import HEARERS, LogLine, level_number

__all__ = ["LastLines"]

_MOST = 1_000
"""The most lines kept of a component."""


@final
class LastLines:
    """Keeps the last lines that each component printed or logged, while it is attached.

    Args:
        topology: the components' topology.
    """

    def __init__(self, topology: str) -> None:
        self._topology = topology
        self._lines: dict[str, deque[tuple[int, LineView]]] = {}
        self._order = count()
        self._guard = threading.Lock()

    def attach(self) -> None:
        """Hear of lines from now on."""
        HEARERS.append(self._hear)

    def detach(self) -> None:
        """Hear of no more lines."""
        HEARERS.remove(self._hear)

    def _hear(self, line: LogLine) -> None:
        if line.topology not in ("", self._topology):  # a process may run several
            return
        with self._guard:
            self._lines.setdefault(line.component, deque(maxlen=_MOST)).append(
                (next(self._order), line.view(time.time()))
            )

    def last(
        self, component: str | None, message: str | None, level: str | None, limit: int
    ) -> list[LineView]:
        """Return the last lines that pass the filters, the oldest first."""
        with self._guard:
            lines = [view for _, view in sorted(chain(*self._lines.values()), key=itemgetter(0))]
        least = 0 if level is None else level_number(level)
        found = [
            line
            for line in lines
            if component in (None, line.component)
            and message in (None, line.message, line.name)
            and level_number(line.level) >= least
        ]
        return found[-limit:] if limit > 0 else []
