"""The messages of the last plan that have not ended, and their failed attempts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparkstorm.components.spout import Split
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.spark.tables.last_plan import LastPlan
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.spark.tables.places import place_of, spans_of
from sparkstorm.verdicts import Failure

__all__ = ["Group", "groups_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Messages of one split that stand alike.

    Attributes:
        owner: the spout's task as ``component/index``.
        state: ``running`` in a batch, ``held`` by a bolt after the batch, ``failed`` in the last
            batch, or ``waiting`` for the next try.
        attempt: the number of the attempt that runs, failed last, or comes next.
        since: when the first attempt began, in seconds since 1970.
        batch: the batch, for messages of the last batch.
        split: the messages' split; None for a spout in the driver, whose messages have no place.
        chosen: the positions of the messages in the split; None for all.
        count: how many messages.
        failure: the last failure, as far as it is known.
    """

    owner: str
    state: str
    attempt: int
    since: float
    batch: int | None = None
    split: Split | None = None
    chosen: Sequence[int] | None = None
    count: int
    failure: Failure | None = None

    @property
    def failed_attempt(self) -> int:
        """The number of the attempt that the failure is of."""
        return self.attempt - (self.state == "waiting")

    def message(self) -> Piece:
        """Return the group as rows of ``messages``."""
        why = self.failure
        return self._piece(
            self.state,
            self.attempt,
            self.since or None,
            self.batch,
            *(
                (None, None, None)
                if why is None
                else (why.reason.value, why.component, why.message)
            ),
            None if self.split is None else json.dumps(self.split.data),
        )

    def attempts(self) -> Iterator[Piece]:
        """Yield the group as rows of ``attempts``, if its last failure is known."""
        why = self.failure
        if why is not None:
            yield self._piece(
                self.failed_attempt,
                "retry",
                why.reason.value,
                why.component,
                why.task,
                why.message,
                why.traceback,
                None,
            )

    def _piece(self, *values: Any) -> Piece:
        spout, _, index = self.owner.rpartition("/")
        facts = (spout, int(index), *values)
        if self.split is None:
            return Piece(facts, [(0, self.count)])
        return Piece(facts, spans_of(self.split, self.chosen), place_of(self.split.data))


def groups_of(last: LastPlan) -> Iterator[Group]:
    """Yield the messages that have not ended, as far as files tell."""
    for planned in last.plan.loads:
        yield from _in_batch(last, planned)
    for item in last.plan.outstanding:
        yield Group(
            owner=item.owner,
            state="held" if item.failure is None and not item.width else "waiting",
            attempt=item.attempt,
            since=item.since,
            split=item.split,
            count=item.split.count,
            failure=item.failure,
        )


def _in_batch(last: LastPlan, planned: PlannedLoad) -> Iterator[Group]:
    load, verdicts = planned.load, last.verdicts
    if not planned.owner or load.first is None:
        return
    facts: dict[str, Any] = {
        "owner": planned.owner,
        "attempt": planned.attempt,
        "since": planned.since,
        "batch": last.plan.number,
        "split": load.split,
    }
    if verdicts is None:
        yield Group(state="running", count=load.count, **facts)
        return
    roots = np.arange(load.first, load.first + load.count, dtype=np.uint64)
    failed = verdicts.failed
    mine = np.isin(failed.roots, roots)
    held = ~np.isin(roots, np.concatenate([verdicts.acked, failed.roots]))
    if held.any():
        chosen = np.flatnonzero(held).tolist()
        yield Group(state="held", chosen=chosen, count=len(chosen), **facts)
    for number in np.unique(failed.which[mine]).tolist():
        places = failed.roots[mine & (failed.which == number)] - np.uint64(load.first)
        why = failed.causes[number]
        yield Group(state="failed", chosen=places.tolist(), count=len(places), failure=why, **facts)
