"""Runs of stages with state: whether what was acked is what Spark commits.

Spark may run a partition of a stage twice in one batch: the output of its first run was lost with
a disk or an executor. Then Spark commits the state that the *first* run wrote, and hands on the
packets that the *last* run sent. The ackers see packets only, so a run that failed a tuple and one
that did not would pass for the same: an ack without its effect in the state.

So each run tells the driver a *fingerprint* of all packets that it received and sent. Two runs with
one fingerprint have acked, failed and held the same tuples, and it does not matter whose state is
kept. If the runs of a partition differ, or one of them is unknown, the batch is rolled back and run
again. The driver asks Spark how many states it has of a partition, and not which it prefers: that
rule is Spark's own, and may change.
"""

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, final

from sparkstorm.tasks.dispatch import Delivery
from sparkstorm.tasks.report import Report

__all__ = ["Place", "StateRun", "StateRuns", "Told", "fingerprint"]

Place: TypeAlias = tuple[int, int]
"""A stage, counted from 0 among all stages of the plan, and a partition."""


@final
@dataclass(frozen=True, slots=True)
class StateRun:
    """One finished run of a stage with state in one partition, as its task tells it."""

    place: Place
    fingerprint: str


Told: TypeAlias = Report | StateRun
"""What a task tells the driver beside its packets."""


@final
@dataclass(frozen=True, slots=True)
class StateRuns:
    """All runs of one batch whose state Spark could commit.

    >>> once, again = StateRun((1, 0), "a"), StateRun((1, 0), "b")
    >>> StateRuns([once], {(1, 0): 1}).differing()
    []
    >>> StateRuns([once, again], {(1, 0): 2}).differing()
    [(1, 0)]

    Attributes:
        told: what the tasks told, in any order.
        states: how many states there are of each partition. A task that received nothing tells
            nothing, and leaves its state as it was.
    """

    told: Iterable[StateRun] = ()
    states: Mapping[Place, int] = field(default_factory=dict)

    def differing(self) -> list[Place]:
        """Return the partitions of which not all runs are known to have done the same."""
        told: dict[Place, list[str]] = {}
        for run in self.told:
            told.setdefault(run.place, []).append(run.fingerprint)
        return [
            place
            for place in sorted({*self.states, *told})
            if not _same(told.get(place, []), self.states.get(place, 0))
        ]


def fingerprint(received: Iterable[bytes], sent: Iterable[Delivery]) -> str:
    """Return a digest of what a run received and sent; the order of the packets is Spark's."""
    digest = hashlib.blake2b(digest_size=16)
    for packets in (received, (data for _, data in sent)):
        checks = sorted((zlib.crc32(data), len(data)) for data in packets)
        digest.update(repr(checks).encode())
    return digest.hexdigest()


def _same(told: list[str], states: int) -> bool:
    if not told:
        return states <= 1
    return len(told) == states and len(set(told)) == 1
