"""The source of the benchmarks: messages made from their numbers, by the executors."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

import sparkstorm as ss


class NumberedSpout(ss.PartitionedSpout):
    """Counts up to a number; a subclass makes the messages.

    Args:
        total: how many messages there are.
    """

    bytes_each = 8
    """An estimate of a message's bytes, for the size of batches."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._next = 0

    def plan(self, limit: int) -> list[ss.Split]:
        """Give out the next numbers."""
        count = min(limit, self._total - self._next)
        if count <= 0:
            return []
        size = count * self.bytes_each
        split = ss.Split(count=count, data={"first": self._next}, size=size)
        self._next += count
        return [split]

    def read(self, split: ss.Split) -> Iterable[Any]:
        """Make the messages of a split."""
        first = split.data["first"]
        yield self.rows(first, first + split.to_read)

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Return the messages of a range of numbers."""
        raise NotImplementedError

    def exhausted(self) -> bool:
        """Whether all messages were given out."""
        return self._next >= self._total
