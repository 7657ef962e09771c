"""Histograms: counts of amounts in buckets, which add up exactly over tasks and batches."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Histogram"]

_PER_DOUBLING = 4
"""Buckets per doubling: a bucket's ends are 19 % apart, so its middle is off by 9 % at most."""

_SMALLEST = 1e-9
"""Smaller amounts, zero among them, are in the bucket of this one."""

_LOWEST = int(np.floor(np.log2(_SMALLEST) * _PER_DOUBLING))


@final
@dataclass(frozen=True, slots=True)
class Histogram:
    """How often amounts of each size occurred: seconds, bytes, or a unit of the user's.

    The counts are exact. A quantile is the middle of its bucket, at most 9 % off.

    >>> times = Histogram.of(np.array([0.001] * 98 + [1.0] * 2))
    >>> times.count, round(times.mean, 3), times.quantile(0.5) < 0.0011, times.quantile(0.99) > 0.9
    (100, 0.021, True, True)

    Attributes:
        buckets: how many amounts are in each bucket; bucket n begins at ``2 ** (n / 4)``.
        total: the sum of all amounts.
    """

    buckets: Mapping[int, int] = field(default_factory=dict)
    total: float = 0.0

    @classmethod
    def of(
        cls, amounts: NDArray[np.float64], counts: NDArray[np.int64] | None = None
    ) -> "Histogram":
        """Count amounts from 0 up, each once, or as often as ``counts`` says."""
        if not len(amounts):
            return cls()
        numbers = np.floor(np.log2(np.maximum(amounts, _SMALLEST)) * _PER_DOUBLING)
        first = int(numbers.min())
        found = np.bincount((numbers - first).astype(np.int64), counts)
        buckets = {first + place: int(found[place]) for place in np.flatnonzero(found).tolist()}
        total = amounts.sum() if counts is None else amounts @ counts
        return cls(buckets, float(total))

    @property
    def count(self) -> int:
        """The number of amounts."""
        return sum(self.buckets.values())

    @property
    def mean(self) -> float:
        """The mean of all amounts; 0 if there is none."""
        return self.total / self.count if self.buckets else 0.0

    def quantile(self, share: float) -> float:
        """Return the amount that a share of all amounts does not exceed; 0 if there is none."""
        wanted = share * self.count
        numbers = sorted(self.buckets)
        for number, reached in zip(
            numbers, accumulate(self.buckets[n] for n in numbers), strict=True
        ):
            if reached >= wanted:
                return 0.0 if number <= _LOWEST else 2 ** ((number + 0.5) / _PER_DOUBLING)
        return 0.0

    def sample(self, most: int) -> list[float]:
        """Return about as many amounts as there are, spread alike, but at most about ``most``."""
        every = max(1.0, self.count / most)
        found: list[float] = []
        left = every / 2
        for number in sorted(self.buckets):
            left += self.buckets[number]
            found += [2 ** ((number + 0.5) / _PER_DOUBLING)] * int(left / every)
            left %= every
        return found

    def up_to(self, bounds: list[float]) -> list[int]:
        """Return how many amounts are below each bound; a bucket counts by its middle."""
        middles = {number: 2 ** ((number + 0.5) / _PER_DOUBLING) for number in self.buckets}
        return [
            sum(count for number, count in self.buckets.items() if middles[number] <= bound)
            for bound in bounds
        ]

    def __add__(self, other: "Histogram") -> "Histogram":
        if not other.buckets:
            return self
        return Histogram(
            dict(Counter(self.buckets) + Counter(other.buckets)), self.total + other.total
        )
