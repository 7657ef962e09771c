"""Retries: messages that wait for their next try."""

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, Self, TypeVar, final

__all__ = ["Retries", "Waiting"]


class Waiting(Protocol):
    """Messages that wait together."""

    @property
    def messages(self) -> int:
        """How many."""
        ...

    @property
    def width(self) -> int:
        """Above 0 for suspects (:mod:`sparkstorm.sources.blame`)."""
        ...

    def cut(self, count: int) -> "tuple[Self, Self | None]":
        """Return the first so many of the messages, and the others if there are any."""
        ...


Item = TypeVar("Item", bound=Waiting)


@final
class Retries(Generic[Item]):
    """The messages of one source that wait: suspects for their turn, others until they are due."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._suspects: list[Item] = []
        self._tie = itertools.count()

    def __iter__(self) -> Iterator[Item]:
        yield from (item for _, _, item in self._heap)
        yield from self._suspects

    def waiting(self) -> Iterator[tuple[float | None, Item]]:
        """Yield when messages are due, and the messages; None for suspects."""
        yield from ((due, item) for due, _, item in list(self._heap))
        yield from ((None, item) for item in list(self._suspects))

    def hurry(self, is_wanted: Callable[[Item], bool], now: float) -> int:
        """Let items be due now; return how many messages they are."""
        found, heap = 0, []
        for due, tie, item in self._heap:
            wanted = is_wanted(item)
            found += item.messages if wanted else 0
            heap.append((min(due, now) if wanted else due, tie, item))
        heapq.heapify(heap)
        self._heap = heap
        return found

    @property
    def messages(self) -> int:
        """How many messages wait."""
        return sum(item.messages for item in self)

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects."""
        return {item.width for item in self._suspects}

    def add(self, item: Item, due: float) -> None:
        """Let messages wait: until they are ``due``, or, suspects, until they are asked for."""
        if item.width:
            self._suspects.append(item)
        else:
            heapq.heappush(self._heap, (due, next(self._tie), item))

    def due(self, now: float) -> int:
        """How many messages need not wait any longer."""
        return sum(item.messages for due, _, item in self._heap if due <= now)

    def take(self, limit: int, now: float) -> list[Item]:
        """Take out up to ``limit`` messages that are due, the longest due first."""
        taken: list[Item] = []
        while limit > 0 and self._heap and self._heap[0][0] <= now:
            due, tie, waiting = heapq.heappop(self._heap)
            item, rest = waiting.cut(limit)
            if rest is not None:
                heapq.heappush(self._heap, (due, tie, rest))
            limit -= item.messages
            taken.append(item)
        return taken

    def take_suspects(self, limit: int, width: int) -> list[Item]:
        """Take out up to ``limit`` suspects of a width."""
        taken: list[Item] = []
        left: list[Item] = []
        for item in self._suspects:
            if item.width != width or limit <= 0:
                left.append(item)
                continue
            mine, rest = item.cut(limit)
            limit -= mine.messages
            taken.append(mine)
            left += [] if rest is None else [rest]
        self._suspects = left
        return taken
