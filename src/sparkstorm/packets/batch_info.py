"""What every worker knows about the batch it works on: a frozen value, JSON between processes."""

import bisect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64
from sparkstorm.acking.tally import RootRange, locate

__all__ = ["BatchInfo", "Purpose", "Retried"]


class Purpose(StrEnum):
    """What an action of a batch is run for."""

    BATCH = "batch"
    """To be committed."""
    PROBE = "probe"
    """To see whether it fails: it counts for nothing, and a task that fails is not tried again."""
    TRIAL = "trial"
    """The same, but with Spark's retries of tasks."""


@final
@dataclass(frozen=True, slots=True)
class Retried:
    """Roots that are not the first attempt at their messages."""

    first: int
    count: int
    attempt: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchInfo:
    """The facts of a batch that its tasks share.

    Attributes:
        number: the batch's number.
        time: when it was planned, in seconds since 1970; the same in a repeated run.
        run: names the driver's life; tasks of an earlier one are not to be trusted.
        ranges: the roots that begin in it.
        retried: those of them that are retries.
        excluded: those of them to leave out, because the batch failed with them; merged.
        purpose: what this action of the batch is run for.
    """

    number: int
    time: float = 0.0
    run: str = ""
    ranges: tuple[RootRange, ...] = ()
    retried: tuple[Retried, ...] = ()
    excluded: tuple[RootRange, ...] = ()
    purpose: Purpose = Purpose.BATCH

    def attempt(self, root: int) -> int:
        """Which try a root is, counted from 1."""
        index = bisect.bisect_right(self.retried, root, key=lambda r: r.first) - 1
        if index >= 0 and root < self.retried[index].first + self.retried[index].count:
            return self.retried[index].attempt
        return 1

    def last_attempt(self, roots: U64) -> int:
        """The highest try that any of these roots is."""
        ranges = [RootRange(one.first, one.count) for one in self.retried]
        found = np.unique(locate(ranges, roots))
        return max((self.retried[which].attempt for which in found[found >= 0]), default=1)

    def attempts(self, roots: U64) -> NDArray[np.int64]:
        """Which try each root is, counted from 1."""
        which = locate([RootRange(r.first, r.count) for r in self.retried], roots)
        return np.array([*(r.attempt for r in self.retried), 1], np.int64)[which]

    def is_excluded(self, roots: U64) -> NDArray[np.bool_]:
        """Which of these roots are to be left out."""
        return locate(self.excluded, roots) >= 0

    def to_json(self) -> str:
        """Return it as text for :meth:`from_json`."""
        return json.dumps(
            {
                "number": self.number,
                "time": self.time,
                "run": self.run,
                "ranges": _pairs(self.ranges),
                "retried": [[r.first, r.count, r.attempt] for r in self.retried],
                "excluded": _pairs(self.excluded),
                "purpose": self.purpose,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "BatchInfo":
        """Build it from :meth:`to_json`'s text."""
        data = json.loads(text)
        return cls(
            number=data["number"],
            time=data["time"],
            run=data["run"],
            ranges=tuple(RootRange(*pair) for pair in data["ranges"]),
            retried=tuple(Retried(*triple) for triple in data["retried"]),
            excluded=tuple(RootRange(*pair) for pair in data["excluded"]),
            purpose=Purpose(data["purpose"]),
        )


def _pairs(ranges: Sequence[RootRange]) -> list[list[int]]:
    return [[span.first, span.count] for span in ranges]
