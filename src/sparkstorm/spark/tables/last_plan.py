"""The last plan of a checkpoint, with the verdicts on its batch: read while a run goes on."""

import re
from dataclasses import dataclass
from typing import final

from sparkstorm.acking.ledger import Verdicts
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.recovery.outcome import BatchOutcome
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.seal import read_sealed
from sparkstorm.errors import CheckpointError

__all__ = ["LastPlan"]

_KEY = re.compile("([0-9]+)-([0-9]+)")

_LOOKS = 20
"""How often the plans are listed anew: a run deletes a plan when the next two are written."""

_AGAIN = "Start the topology again: it says what can be done"


@final
@dataclass(frozen=True, slots=True)
class LastPlan:
    """The newest plan of the newest driver.

    Attributes:
        plan: the plan.
        verdicts: the verdicts on its batch; None if the batch has not ended, or the plan has
            settled it.
    """

    plan: BatchPlan
    verdicts: Verdicts | None

    @classmethod
    def read(cls, files: CheckpointFiles) -> "LastPlan | None":
        """Return the last plan, or None if there is none yet.

        Every file is written whole, and deleted only when a newer one is there. So a file that is
        gone has a successor.

        Raises:
            CheckpointError: the newest plan or its outcome is damaged.
        """
        for _ in range(_LOOKS):
            found = [m for name in files.names("plans") if (m := _KEY.fullmatch(name))]
            if not found:
                return None
            name = max(found, key=lambda match: (int(match[1]), int(match[2])))[0]
            data = read_sealed(files, f"plans/{name}", _AGAIN)
            if data is not None:
                return cls._with_verdicts(BatchPlan.from_json(data), files, name)
        raise CheckpointError("the plans of the checkpoint change faster than they can be read")

    @classmethod
    def _with_verdicts(cls, plan: BatchPlan, files: CheckpointFiles, name: str) -> "LastPlan":
        data = None if plan.settled else read_sealed(files, f"outcomes/{name}", _AGAIN)
        return cls(plan, None if data is None else BatchOutcome.from_bytes(data).verdicts(plan))
