"""Message times: when each message was planned, for the time from plan to ack."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import SEQUENCE_BITS, U64
from sparkstorm.acking.tally import RootRange

__all__ = ["MessageTimes", "tasks_of"]

_KEPT = 8
"""The newest batches of a task are kept in any case: their roots may still be open."""

_FEW = 64
"""Below this length nobody needs to look for batches whose roots have all ended."""


@final
class MessageTimes:
    """Knows when roots were planned: one entry for each batch of a spout task, not per message.

    The roots of a task ascend from batch to batch, so the first root of each batch suffices.
    """

    def __init__(self) -> None:
        self._firsts: dict[int, list[int]] = {}
        self._times: dict[int, list[float]] = {}
        self._limit = _FEW

    def begin(self, ranges: Iterable[RootRange], now: float) -> None:
        """Note the roots of a batch that is planned now."""
        firsts: dict[int, int] = {}
        for span in ranges:
            task = span.first >> SEQUENCE_BITS
            firsts[task] = min(span.first, firsts.get(task, span.first))
        for task, first in firsts.items():
            self._firsts.setdefault(task, []).append(first)
            self._times.setdefault(task, []).append(now)

    def ages(self, task: int, roots: U64, now: float) -> NDArray[np.float64]:
        """Return the seconds since the plan of each root; without roots of earlier drivers."""
        found = self._locate(task, roots)
        times = np.array(self._times.get(task, ()), np.float64)
        known: NDArray[np.float64] = now - times[found[found >= 0]]
        return known

    def forget(self, open_roots: Callable[[], U64]) -> None:
        """Forget batches of which no root is open: now and then, since that looks at all roots."""
        if len(self) <= self._limit:
            return
        roots = open_roots()
        for task in self._firsts:
            mine = roots[roots >> np.uint64(SEQUENCE_BITS) == task]
            size = len(self._firsts[task])
            keep = sorted({*np.unique(self._locate(task, mine)).tolist(), *range(size)[-_KEPT:]})
            keep = keep[bisect_right(keep, -1) :]
            self._firsts[task] = [self._firsts[task][place] for place in keep]
            self._times[task] = [self._times[task][place] for place in keep]
        self._limit = max(_FEW, 2 * len(self))

    def __len__(self) -> int:
        return sum(map(len, self._firsts.values()))

    def _locate(self, task: int, roots: U64) -> NDArray[np.int64]:
        firsts = np.array(self._firsts.get(task, ()), np.uint64)
        places: NDArray[np.int64] = np.searchsorted(firsts, roots, side="right") - 1
        return places


def tasks_of(roots: U64) -> list[int]:
    """Return the spout tasks of roots, ascending."""
    found: list[int] = np.unique(roots >> np.uint64(SEQUENCE_BITS)).tolist()
    return found
