"""Repeats: the runs of an exactly-once batch, and the failures of its messages meanwhile."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.lineage import Indexes
from sparkstorm.batches.planning.batch_plan import BatchPlan

__all__ = ["Repeats"]


@final
@dataclass(slots=True)
class Repeats:
    """The runs of one exactly-once batch; a failure rolls the whole batch back.

    Attributes:
        tries: how often the batch was run, the running try included.
        failed: how often each root failed by itself.
        given_up: the roots that failed too often, and how: the batch is run without these roots.
    """

    tries: int = 1
    failed: Counter[int] = field(default_factory=Counter)
    given_up: FailedRoots = field(default_factory=FailedRoots.none)

    def note_failing(self, failing: FailedRoots, plan: BatchPlan) -> Indexes:
        """Count failures; return how often each root was tried, earlier batches included.

        A failure of its own is a try of a message; a roll-back with other messages is not.
        """
        counted = np.array([failure.counted for failure in failing.causes], np.bool_)
        self.failed.update(failing.roots[counted[failing.which]].tolist())
        before = plan.info().attempts(failing.roots)
        return before + self._times_failed(failing) - 1

    def repeat(self, without: FailedRoots) -> None:
        """Begin the next run, ``without`` these roots for good.

        The attempt of a failure counts from 1 within the batch.
        """
        times = self._times_failed(without)
        for attempt in np.unique(times).tolist():
            last = partial(replace, final=True, attempt=attempt)
            gone = without.select(times == attempt).changed(last)
            self.given_up = FailedRoots.merge([gone, self.given_up])
        self.tries += 1

    def _times_failed(self, failing: FailedRoots) -> Indexes:
        """Return how often each root has failed in the batch, once at least."""
        return np.array([self.failed[root] or 1 for root in failing.roots.tolist()], np.int64)
