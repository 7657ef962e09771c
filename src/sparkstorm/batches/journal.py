"""The journal: the files that a driver writes for each batch, and reads from the driver before.

``plans/E-N`` is the plan of batch N by the driver of epoch E, ``outcomes/E-N`` the batch's outcome,
and ``decisions/E-N`` the decision on an exactly-once batch. The epoch in the name keeps late writes
of a superseded driver apart from the files of its successor.

The order of the writes decides the meaning of a damaged file: ``docs/guarantees.md`` has the cases.
"""

import re
from typing import final

from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.lease import Fence
from sparkstorm.checkpoint.seal import read_sealed, write_sealed
from sparkstorm.errors import CheckpointError
from sparkstorm.texts.logs import logger_of

__all__ = ["Journal"]

_KEPT = 2
"""How many plans are kept: the newest, and the plan before as a reserve against damage."""

_KEY = re.compile("(0|[1-9][0-9]*)-(0|[1-9][0-9]*)")

_RESTORE = (
    "Restore it from a backup of the checkpoint, or give another checkpoint folder: sources then "
    "give again what was not acked, and state begins anew"
)
_NEVER_MIND = (
    "Restore it from a backup; or delete it, and all messages of that batch that a partitioned "
    "spout has given out are processed once more"
)
_ASK_TARGETS = (
    "It says what the committers were about to apply: if none of their targets has the "
    "transaction of this number, delete the file, and the batch is run anew; else restore it "
    "from a backup"
)

_logger = logger_of(__name__)


@final
class Journal:
    """Plans, outcomes and decisions in a checkpoint.

    Args:
        files: the checkpoint.
        fence: asked before each write, and again after the write of a plan or a decision.
    """

    def __init__(self, files: CheckpointFiles, fence: Fence) -> None:
        self._files = files
        self._fence = fence
        self._read_epoch = fence.epoch
        self._damaged = ""
        self._decisions_there = True  # perhaps, of an earlier driver

    def check(self) -> None:
        """Make sure that this driver may still write.

        Raises:
            SupersededError: another run has taken over.
        """
        self._fence.check()

    def last(self, log: EngineLog) -> BatchPlan | None:
        """Return the last plan of the driver before this one, or None for a new checkpoint.

        A driver tells Spark of a plan only after the write, and after a check that its epoch is
        still the newest. So a plan of an older epoch with a higher number never ran.

        A damaged newest plan counts as not written, unless its batch ran.

        Args:
            log: the batches that Spark, or another engine, has heard of and committed.

        Raises:
            SupersededError: another run has taken over; the files may be newer than this run.
            CheckpointError: a plan that was used is damaged or gone.
        """
        self._tell_strangers()
        found = self._sorted("plans")
        self.check()
        plan = None
        if found:
            try:
                plan = self._plan(*found[-1])
            except CheckpointError as error:
                self._check_unused(*found[-1], log, error)
                plan = self._plan(*found[-2]) if found[1:] else None
                self._damaged = f"sparkstorm/{_name('plans', *found[-1])}"
                _logger.warning("%s. No batch was run by it, so it is ignored", error)
        self.check()
        if plan is None:
            log.check(-1, -1, self._damaged)
        else:
            log.check(plan.number, plan.number - (not plan.settled), self._damaged)
        return plan

    def write_plan(self, plan: BatchPlan) -> None:
        """Write a plan.

        Raises:
            SupersededError: another run has taken over; the plan must not run.
        """
        self._write("plans", plan.number, plan.to_json())
        self.check()

    def write_outcome(self, number: int, data: bytes) -> None:
        """Write the outcome of a batch.

        Raises:
            SupersededError: another run has taken over; Spark must not commit the batch.
        """
        self._write("outcomes", number, data)

    def write_decision(self, number: int, data: bytes) -> None:
        """Write the decision on a batch.

        Raises:
            SupersededError: another run has taken over, perhaps without sight of the decision; the
                committers must not act on the decision.
        """
        self._decisions_there = True
        self._write("decisions", number, data)
        self.check()

    def earlier_decision(self, number: int) -> bytes | None:
        """Return the decision of the driver before on its last batch, or None."""
        return self._read("decisions", number, _ASK_TARGETS)

    def earlier_outcome(self, number: int) -> bytes | None:
        """Return the outcome that the driver before wrote for its last batch, or None."""
        return self._read("outcomes", number, _NEVER_MIND)

    def missing_decision(self, number: int) -> CheckpointError:
        """Return the error of a committed batch whose decision is gone."""
        name = f"sparkstorm/{_name('decisions', self._read_epoch, number)}"
        why = f", since {self._damaged}, which came after it, is damaged" if self._damaged else ""
        return CheckpointError(
            f"batch {number} was applied and committed, and its decision {name} is gone{why}: its "
            f"messages would be applied once more. {_RESTORE}"
        )

    def purge(self) -> None:
        """Delete the files that no restart can need, once a new plan is written.

        Files of later epochs stay.
        """
        for epoch, number in self._sorted("plans")[:-_KEPT]:
            self._files.delete(_name("plans", epoch, number))
        self._delete_all("outcomes")
        if self._decisions_there:  # else each batch would look for them, perhaps far away
            self._delete_all("decisions")
            self._decisions_there = False

    def _delete_all(self, folder: str) -> None:
        for epoch, number in self._sorted(folder):
            self._files.delete(_name(folder, epoch, number))

    def _write(self, folder: str, number: int, data: bytes) -> None:
        self.check()
        write_sealed(self._files, _name(folder, self._fence.epoch, number), data)

    def _plan(self, epoch: int, number: int) -> BatchPlan | None:
        data = read_sealed(self._files, _name("plans", epoch, number), _RESTORE)
        self._read_epoch = epoch
        return None if data is None else BatchPlan.from_json(data)

    def _check_unused(
        self, epoch: int, number: int, log: EngineLog, damage: CheckpointError
    ) -> None:
        """Raise the damage of a plan whose batch ran: an outcome is there, or a commit of Spark's.

        If Spark knows the batch only by an older plan, the older plan still holds.
        """
        ran = any(
            self._files.read(_name(folder, epoch, number)) is not None
            for folder in ("outcomes", "decisions")
        )
        if ran or log.committed >= number:
            raise damage

    def _tell_strangers(self) -> None:
        for folder in ("plans", "outcomes", "decisions"):
            for name in self._files.names(folder):
                if not _KEY.fullmatch(name):
                    _logger.warning(
                        "the checkpoint's file sparkstorm/%s/%s is none of sparkstorm's: it is "
                        "ignored; better move it away",
                        folder,
                        name,
                    )

    def _read(self, folder: str, number: int, mend: str) -> bytes | None:
        return read_sealed(self._files, _name(folder, self._read_epoch, number), mend)

    def _sorted(self, folder: str) -> list[tuple[int, int]]:
        """Return epoch and number of each file, up to this driver's own epoch."""
        matches = (_KEY.fullmatch(name) for name in self._files.names(folder))
        found = sorted((int(match[1]), int(match[2])) for match in matches if match)
        return [key for key in found if key[0] <= self._fence.epoch]


def _name(folder: str, epoch: int, number: int) -> str:
    return f"{folder}/{epoch}-{number}"
