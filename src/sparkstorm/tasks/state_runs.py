"""Runs of stages with state: proof that Spark commits the state behind the acks.

Spark may run a partition of a stage twice in a batch, if the output of the first run was lost with
a disk or an executor. Then Spark commits the state that the *first* run wrote, but hands on the
packets that the *last* run sent. The ackers see packets alone. A run that failed a tuple and a run
that acked the tuple would look the same: an ack without its effect in the state.

So each run tells the driver a *fingerprint* of all packets received and sent. Runs with the same
fingerprint have acked, failed and held the same tuples, so either state is right. If the runs of a
partition differ, or a run is unknown, the batch is rolled back and run again. The driver asks Spark
for the number of states of a partition, not for the state that Spark prefers: the rule is Spark's
own, and may change.
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
    """A finished run of a stage with state in a partition, as the run's task tells it."""

    place: Place
    fingerprint: str


Told: TypeAlias = Report | StateRun
"""A task's message to the driver beside its packets."""


@final
@dataclass(frozen=True, slots=True)
class StateRuns:
    """All runs of a batch whose state Spark could commit.

    >>> once, again = StateRun((1, 0), "a"), StateRun((1, 0), "b")
    >>> StateRuns([once], {(1, 0): 1}).differing()
    []
    >>> StateRuns([once, again], {(1, 0): 2}).differing()
    [(1, 0)]

    Attributes:
        told: the tasks' messages, in any order.
        states: the number of states of each partition. A task without packets tells nothing, and
            leaves its state unchanged.
    """

    told: Iterable[StateRun] = ()
    states: Mapping[Place, int] = field(default_factory=dict)

    def differing(self) -> list[Place]:
        """Return the partitions without proof that all runs did the same."""
        told: dict[Place, list[str]] = {}
        for run in self.told:
            told.setdefault(run.place, []).append(run.fingerprint)
        return [
            place
            for place in sorted({*self.states, *told})
            if not _same(told.get(place, []), self.states.get(place, 0))
        ]


def fingerprint(received: Iterable[bytes], sent: Iterable[Delivery]) -> str:
    """Return a digest of a run's packets, received and sent, in any order of Spark's."""
    digest = hashlib.blake2b(digest_size=16)
    for packets in (received, (data for _, data in sent)):
        checks = sorted((zlib.crc32(data), len(data)) for data in packets)
        digest.update(repr(checks).encode())
    return digest.hexdigest()


def _same(told: list[str], states: int) -> bool:
    if not told:
        # No task told of the place: the one state is that of a run without packets.
        return states <= 1
    return len(told) == states and len(set(told)) == 1
