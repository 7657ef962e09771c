"""Outcomes: the result of a batch, written down before Spark commits the batch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.poisons.left_out import LeftOut
from sparkstorm.batches.recovery.carry_over import ended_by, join_rows, split_rows
from sparkstorm.packets.packet import Packet
from sparkstorm.tasks.acker import decode_result

__all__ = ["BatchOutcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """The facts that a later driver needs to give the verdicts of a batch.

    Attributes:
        rows: the answers of the batch's ackers.
        left_out: the roots that the batch was run without. The decision has the given-up roots.
    """

    rows: Sequence[bytes]
    left_out: LeftOut = field(default_factory=LeftOut)

    def verdicts(self, plan: BatchPlan) -> Verdicts:
        """Return the batch's verdicts, including those on left-out messages."""
        results = [decode_result(Packet.decode(row)) for row in self.rows]
        return self.left_out.explained(ended_by(plan, results), plan)

    def to_bytes(self) -> bytes:
        """Return the outcome as bytes for :meth:`from_bytes`."""
        head = {
            "excluded": [[span.first, span.count] for span in self.left_out.excluded],
            "poisons": list(self.left_out.poisons.items()),
        }
        return join_rows([json.dumps(head).encode(), *self.rows])

    @classmethod
    def from_bytes(cls, data: bytes) -> "BatchOutcome":
        """Build an outcome from :meth:`to_bytes`."""
        first, *rows = split_rows(data)
        head = json.loads(first)
        excluded = tuple(RootRange(*pair) for pair in head["excluded"])
        return cls(rows=rows, left_out=LeftOut(excluded, dict(head["poisons"])))
