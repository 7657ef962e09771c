"""What came of a batch, written down before Spark commits it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.batch import BatchRecord
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.recovery.carry_over import ended_by, join_rows, split_rows
from sparkstorm.packets.packet import Packet
from sparkstorm.tasks.acker import decode_result

__all__ = ["Outcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a later driver needs to give the verdicts of a batch, if its own did not come to it.

    Attributes:
        rows: what its ackers said.
        excluded: what was left out of it, since its job failed with it.
        poisons: those of them that failed the job on their own, with what each did.
    """

    rows: Sequence[bytes]
    excluded: tuple[RootRange, ...] = ()
    poisons: Mapping[int, str] = field(default_factory=dict)

    def verdicts(self, plan: BatchPlan) -> Verdicts:
        """Return what ended by it, with the word on what it was run without."""
        record = BatchRecord(plan, excluded=self.excluded, poisons=self.poisons)
        results = [decode_result(Packet.decode(row)) for row in self.rows]
        return record.with_poisons(ended_by(plan, results))

    def to_bytes(self) -> bytes:
        """Return it as bytes for :meth:`from_bytes`."""
        head = {
            "excluded": [[span.first, span.count] for span in self.excluded],
            "poisons": list(self.poisons.items()),
        }
        return join_rows([json.dumps(head).encode(), *self.rows])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Outcome":
        """Build it from :meth:`to_bytes`."""
        first, *rows = split_rows(data)
        head = json.loads(first)
        return cls(
            rows=rows,
            excluded=tuple(RootRange(*pair) for pair in head["excluded"]),
            poisons=dict(head["poisons"]),
        )
