"""What came of a batch, written down before Spark commits it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.left_out import LeftOut
from sparkstorm.batches.recovery.carry_over import ended_by, join_rows, split_rows
from sparkstorm.packets.packet import Packet
from sparkstorm.tasks.acker import decode_result

__all__ = ["Outcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a later driver needs to give the verdicts of a batch, if its own did not come to it.

    Attributes:
        rows: the answers of its ackers.
        left_out: the roots that it was run without. Roots that were given up stand in the decision.
    """

    rows: Sequence[bytes]
    left_out: LeftOut = field(default_factory=LeftOut)

    def verdicts(self, plan: BatchPlan) -> Verdicts:
        """Return what ended by it, with the word on what it was run without."""
        results = [decode_result(Packet.decode(row)) for row in self.rows]
        return self.left_out.explained(ended_by(plan, results), plan)

    def to_bytes(self) -> bytes:
        """Return it as bytes for :meth:`from_bytes`."""
        head = {
            "excluded": [[span.first, span.count] for span in self.left_out.excluded],
            "poisons": list(self.left_out.poisons.items()),
        }
        return join_rows([json.dumps(head).encode(), *self.rows])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Outcome":
        """Build it from :meth:`to_bytes`."""
        first, *rows = split_rows(data)
        head = json.loads(first)
        excluded = tuple(RootRange(*pair) for pair in head["excluded"])
        return cls(rows=rows, left_out=LeftOut(excluded, dict(head["poisons"])))
