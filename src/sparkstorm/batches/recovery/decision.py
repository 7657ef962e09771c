"""Decisions: the content of an exactly-once batch, written down before anybody sees the batch."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.tally import RootRange, merge_ranges
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.recovery.carry_over import carried, join_rows, pairs_of, split_rows
from sparkstorm.errors import CheckpointError
from sparkstorm.packets.failures import pack_failed, unpack_failed

__all__ = ["Decision"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The content of a batch, durable before the committers apply the batch.

    A later driver that has to run the batch again gives the batch the same content, and has the
    committers apply the values staged here, not those of its own run.

    Attributes:
        time: when the batch was planned, in seconds since 1970: bolts may have used the time.
        excluded: the roots that the batch happens without.
        given_up: the roots among them that failed too often, and how.
        staged: for each committer with something to apply, the pickled list of staged values.
        tries: how often the batch was run until then: bolts may have looked at the attempt.
    """

    time: float
    excluded: tuple[RootRange, ...] = ()
    given_up: FailedRoots = field(default_factory=FailedRoots.none)
    staged: Mapping[str, bytes] = field(default_factory=dict)
    tries: int = 1

    def check_committers(self, number: int, there: Collection[str]) -> None:
        """Make sure that all committers of the decision are there.

        Raises:
            CheckpointError: a committer is gone, perhaps before it applied the batch.
        """
        gone = sorted(set(self.staged) - set(there))
        if gone:
            raise CheckpointError(
                f"batch {number} was decided on with the committer {gone[0]!r}, which may not have "
                f"applied it, and the topology has no such committer any more: run it once more "
                f"with that one"
            )

    def carried_over(self, was: BatchPlan, now: BatchPlan) -> "Decision":
        """Return the decision for the same loads with the roots of a later driver."""
        excluded = merge_ranges(
            RootRange(new.first + part.first - old.first, part.count)
            for old, new in pairs_of(was, now)
            for part in _inside(self.excluded, old)
        )
        return replace(self, excluded=excluded, given_up=carried(self.given_up, was, now))

    def to_bytes(self) -> bytes:
        """Return the decision as bytes for :meth:`from_bytes`."""
        head = {
            "time": self.time,
            "excluded": [[span.first, span.count] for span in self.excluded],
            "committers": list(self.staged),
            "tries": self.tries,
        }
        given_up = pack_failed(self.given_up)
        return join_rows([json.dumps(head).encode(), *given_up, *self.staged.values()])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Decision":
        """Build a decision from :meth:`to_bytes`."""
        first, causes, roots, which, *staged = split_rows(data)
        head, given_up = json.loads(first), unpack_failed([causes, roots, which])
        return cls(
            time=head["time"],
            excluded=tuple(RootRange(*pair) for pair in head["excluded"]),
            given_up=given_up,
            staged=dict(zip(head["committers"], staged, strict=True)),
            tries=head.get("tries", 1),
        )


def _inside(spans: Iterable[RootRange], whole: RootRange) -> Iterator[RootRange]:
    for span in spans:
        first = max(span.first, whole.first)
        end = min(span.first + span.count, whole.first + whole.count)
        if first < end:
            yield RootRange(first, end - first)
