"""The facts of a batch, known to every worker: a frozen value, JSON between processes."""

import bisect
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64
from sparkstorm.acking.tally import RootRange, locate

__all__ = ["BatchInfo", "Purpose", "Retried"]


class Purpose(StrEnum):
    """The reason for an action of a batch."""

    BATCH = "batch"
    """To commit the batch."""
    PROBE = "probe"
    """To see whether the action fails. The result is thrown away; Spark retries no task."""
    TRIAL = "trial"
    """Like a probe, but with Spark's retries of tasks."""


@final
@dataclass(frozen=True, slots=True)
class Retried:
    """Consecutive roots of a further attempt at their messages."""

    first: int
    count: int
    attempt: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchInfo:
    """The facts of a batch that its tasks share.

    Attributes:
        number: the batch's number.
        time: the time of planning, in seconds since 1970; the same in a repeated run.
        run: the name of the driver's life; tasks of earlier lives are not trusted.
        ranges: the roots that begin in the batch.
        retried: the retries among the roots.
        excluded: the roots to leave out, because the batch failed with them; merged.
        purpose: the reason for this action of the batch.
        traced: the roots, begun in this batch or before, whose trees people want to see; sorted.
        followed: messages whose payload contains one of these texts are traced as well.
        levels: from which level on components log, for those that people have set.
    """

    number: int
    time: float = 0.0
    run: str = ""
    ranges: tuple[RootRange, ...] = ()
    retried: tuple[Retried, ...] = ()
    excluded: tuple[RootRange, ...] = ()
    purpose: Purpose = Purpose.BATCH
    traced: tuple[RootRange, ...] = ()
    followed: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()

    def attempt(self, root: int) -> int:
        """Return the number of a root's attempt, from 1."""
        index = bisect.bisect_right(self.retried, root, key=lambda r: r.first) - 1
        # The ranges are sorted and disjoint, so only the last one that begins before the root can
        # hold it.
        if index >= 0 and root < self.retried[index].first + self.retried[index].count:
            return self.retried[index].attempt
        return 1

    def last_attempt(self, roots: U64) -> int:
        """Return the highest attempt among the roots."""
        ranges = [RootRange(one.first, one.count) for one in self.retried]
        found = np.unique(locate(ranges, roots))
        return max((self.retried[which].attempt for which in found[found >= 0]), default=1)

    def attempts(self, roots: U64) -> NDArray[np.int64]:
        """Return the number of each root's attempt, from 1."""
        which = locate([RootRange(r.first, r.count) for r in self.retried], roots)
        return np.array([*(r.attempt for r in self.retried), 1], np.int64)[which]

    def level_of(self, component: str) -> int:
        """Return the level of ``logging`` from which on a component logs."""
        return dict(self.levels).get(component, logging.INFO)

    def traced_of(self, roots: U64) -> U64:
        """Return the roots among some that are traced."""
        return roots[locate(self.traced, roots) >= 0]

    def tracing(self, roots: U64) -> "BatchInfo":
        """Return the same facts with more roots to trace: ascending, some perhaps traced now."""
        more = (RootRange(root, 1) for root in roots[locate(self.traced, roots) < 0].tolist())
        return replace(self, traced=tuple(sorted((*self.traced, *more))))

    def is_excluded(self, roots: U64) -> NDArray[np.bool_]:
        """Mark the excluded roots."""
        return locate(self.excluded, roots) >= 0

    def to_json(self) -> str:
        """Return the facts as text for :meth:`from_json`."""
        return json.dumps(
            {
                "number": self.number,
                "time": self.time,
                "run": self.run,
                "ranges": _pairs(self.ranges),
                "retried": [[r.first, r.count, r.attempt] for r in self.retried],
                "excluded": _pairs(self.excluded),
                "purpose": self.purpose,
                "traced": _pairs(self.traced),
                "followed": self.followed,
                "levels": self.levels,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "BatchInfo":
        """Return the facts from :meth:`to_json`'s text."""
        data = json.loads(text)
        return cls(
            number=data["number"],
            time=data["time"],
            run=data["run"],
            ranges=tuple(RootRange(*pair) for pair in data["ranges"]),
            retried=tuple(Retried(*triple) for triple in data["retried"]),
            excluded=tuple(RootRange(*pair) for pair in data["excluded"]),
            purpose=Purpose(data["purpose"]),
            traced=tuple(RootRange(*pair) for pair in data["traced"]),
            followed=tuple(data["followed"]),
            levels=tuple((component, level) for component, level in data["levels"]),
        )


def _pairs(ranges: Sequence[RootRange]) -> list[list[int]]:
    return [[span.first, span.count] for span in ranges]
