"""Splits that wait for their next try."""

import heapq
import itertools
from collections.abc import Iterator
from typing import final

from sparkstorm.sources.planned import Outstanding

__all__ = ["Retries"]


@final
class Retries:
    """What is to be tried again, by the time when it is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Outstanding]] = []
        self._tie = itertools.count()

    def __iter__(self) -> Iterator[Outstanding]:
        return (item for _, _, item in self._heap)

    def add(self, item: Outstanding, due: float) -> None:
        """Let a split wait until it is ``due``."""
        heapq.heappush(self._heap, (due, next(self._tie), item))

    def due(self, now: float) -> int:
        """How many messages need not wait any longer."""
        return sum(item.split.count for due, _, item in self._heap if due <= now)

    def take(self, limit: int, now: float) -> list[Outstanding]:
        """Take out up to ``limit`` messages that are due, those first that are so for longest."""
        taken: list[Outstanding] = []
        while limit > 0 and self._heap and self._heap[0][0] <= now:
            due, tie, waiting = heapq.heappop(self._heap)
            item, rest = waiting.cut(limit)
            if rest is not None:
                heapq.heappush(self._heap, (due, tie, rest))
            limit -= item.split.count
            taken.append(item)
        return taken
