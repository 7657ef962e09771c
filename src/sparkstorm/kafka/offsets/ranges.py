"""Sets of offsets, kept as ranges: what is done in a partition comes in long runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeAlias, final

__all__ = ["Range", "Ranges"]

Range: TypeAlias = tuple[int, int]
"""A half-open range of offsets."""


@final
class Ranges:
    """A set of whole numbers as sorted ranges that neither overlap nor touch.

    >>> done = Ranges([(5, 7), (0, 2)])
    >>> done.add([(2, 3), (6, 9)])
    >>> list(done), len(done), 8 in done
    ([(0, 3), (5, 9)], 7, True)
    """

    __slots__ = ("_length", "_starts", "_stops")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._length = 0
        self.add(ranges)

    def add(self, ranges: Iterable[Range]) -> None:
        """Add ranges, in any order; they may overlap what is there, and one another."""
        new = sorted(pair for pair in ranges if pair[0] < pair[1])
        if not new:
            return
        # only the stretch that the new ones touch is merged, so that adding at one end is cheap
        low = bisect_left(self._stops, new[0][0])
        high = bisect_right(self._starts, max(stop for _, stop in new))
        before = list(zip(self._starts[low:high], self._stops[low:high], strict=True))
        after = _merged(sorted([*before, *new]))
        self._starts[low:high] = [start for start, _ in after]
        self._stops[low:high] = [stop for _, stop in after]
        self._length += _size(after) - _size(before)

    def drop_below(self, offset: int) -> None:
        """Forget every number smaller than ``offset``."""
        keep = bisect_right(self._stops, offset)
        self._length -= _size(zip(self._starts[:keep], self._stops[:keep], strict=True))
        del self._starts[:keep], self._stops[:keep]
        if self._starts and self._starts[0] < offset:
            self._length -= offset - self._starts[0]
            self._starts[0] = offset

    def end_of_run(self, offset: int) -> int:
        """The first number from ``offset`` on that is not in the set."""
        index = bisect_right(self._starts, offset) - 1
        return self._stops[index] if index >= 0 and offset < self._stops[index] else offset

    def gaps(self, start: int, stop: int) -> Iterator[Range]:
        """Return the parts of ``[start, stop)`` that are not in the set, ascending."""
        index = bisect_right(self._stops, start)
        while start < stop:
            begin = self._starts[index] if index < len(self._starts) else stop
            if start < begin:
                yield start, min(begin, stop)
            start = self._stops[index] if index < len(self._stops) else stop
            index += 1

    @property
    def runs(self) -> int:
        """How many ranges it takes."""
        return len(self._starts)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._stops, strict=True)

    def __contains__(self, offset: int) -> bool:
        return self.end_of_run(offset) > offset

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranges):
            return NotImplemented
        return self._starts == other._starts and self._stops == other._stops

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ranges({len(self)} in {self.runs} runs)"


def _merged(ordered: list[Range]) -> list[Range]:
    out = [ordered[0]]
    for start, stop in ordered[1:]:
        if start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        else:
            out.append((start, stop))
    return out


def _size(ranges: Iterable[Range]) -> int:
    return sum(stop - start for start, stop in ranges)
