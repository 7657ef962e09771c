"""The spread of loads over partitions: the next load goes where the fewest messages are."""

import heapq
from typing import final

__all__ = ["Spread"]


@final
class Spread:
    """Spreads the loads of one batch over partitions; among equal ones the next in turn is chosen.

    >>> spread = Spread(partitions=3, first=1)
    >>> [spread.lightest(weight) for weight in (5, 2, 9, 1, 1, 1)]
    [1, 2, 0, 2, 2, 2]
    """

    def __init__(self, partitions: int, first: int) -> None:
        self._partitions = partitions
        self._first = first
        self._used: list[tuple[int, int]] = []

    def lightest(self, weight: int) -> int:
        """Return the partition for a load of so many messages."""
        if len(self._used) < self._partitions:  # those that have nothing yet, one after the other
            turn = len(self._used)
            heapq.heappush(self._used, (weight, turn))
        else:
            before, turn = self._used[0]
            heapq.heapreplace(self._used, (before + weight, turn))
        return (self._first + turn) % self._partitions
