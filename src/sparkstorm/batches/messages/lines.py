"""Lines of messages: what components logged while they executed a message's tuples."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.control.views import LineView
from sparkstorm.tasks.report import LogLine

__all__ = ["Lines", "MessageLines"]

_MOST_LINES = 20_000
_MOST_ROOTS = 10_000
"""The limits of memory: the lines of the oldest roots are forgotten first."""

_MOST_OF_ROOT = 100
"""The lines kept of one attempt: the last."""

_MOST_CHARS = 2_000

Lines = list[LineView]


@final
class MessageLines:
    """Keeps the last lines of each attempt: of failed messages, however many others log.

    Lines of acked messages are forgotten, but for those of attempts that are kept. Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Lines] = OrderedDict()
        self._count = 0

    def hear(self, lines: Iterable[LogLine]) -> None:
        """Keep lines that name their messages."""
        now = time.time()
        for line in lines:
            if line.root is not None and line.message:
                self._keep(line.root, line, now)

    def of(self, root: int) -> Lines:
        """Return the lines of an attempt that goes on: a list that later lines are added to."""
        found = self._kept.get(root)
        if found is None:
            found = self._kept[root] = []
            self._trim()
        return found

    def until_end(self, root: int) -> Sequence[LineView]:
        """Return the lines of an attempt that has ended; most have none, and take no memory."""
        found = self._kept.get(root)
        if found is not None and not found:
            del self._kept[root]
        return found or ()

    def drop(self, acked: U64, but: Sequence[int]) -> None:
        """Forget the lines of acked messages, some ascending roots, but for some that are kept."""
        if self._kept and len(acked):
            known = np.array([*self._kept], np.uint64)
            done = known[np.isin(known, acked) & ~np.isin(known, np.array(but, np.uint64))]
            for root in done.tolist():
                self._forget(root)

    def _keep(self, root: int, line: LogLine, now: float) -> None:
        lines = self.of(root)
        kept = replace(line, text=line.text[:_MOST_CHARS], trace=line.trace[-_MOST_CHARS:])
        lines.append(kept.view(now))
        if len(lines) > _MOST_OF_ROOT:
            del lines[0]
        else:
            self._count += 1
        self._trim()

    def _trim(self) -> None:
        while len(self._kept) > _MOST_ROOTS or (self._count > _MOST_LINES and len(self._kept) > 1):
            self._forget(next(iter(self._kept)))

    def _forget(self, root: int) -> None:
        lines = self._kept.pop(root)
        self._count -= len(lines)
        lines.clear()  # an attempt may refer to them
