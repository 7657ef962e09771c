"""What a driver writes down batch by batch, and what it finds of an earlier one.

``plans/E-N`` is the plan of batch N by the driver of epoch E, ``outcomes/E-N`` what came out, and
``decisions/E-N`` what was decided about it if batches happen exactly once. With the epoch in its
name, nothing that a superseded driver is late to write can replace what its successor wrote, or
pass for it.

Who wrote what when decides what a damaged file means: ``docs/guarantees.md`` has the cases.
"""

import re
from typing import final

from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.lease import Fence
from sparkstorm.checkpoint.seal import read_sealed, write_sealed
from sparkstorm.errors import CheckpointError
from sparkstorm.texts.logs import logger_of

__all__ = ["Journal"]

_KEPT = 2
"""The newest plan holds what is owed before it; one more is kept, should it be damaged."""

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
    """Plans and outcomes on a checkpoint.

    Args:
        files: the checkpoint.
        fence: asked before each write, and after that of a plan or a decision.
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
        """The last plan of the driver before this one; of the newest epoch, if there are several.

        A plan is only told to Spark after it is written and the epoch is found to be still the
        newest. So one of an older epoch and a higher number was never run.

        If the newest one is damaged, and no batch was run by it, it counts as not written.

        Args:
            log: what Spark knows, or whatever engine runs the batches.

        Raises:
            SupersededError: another run has taken over; what is there may be newer than this run.
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
        """Make a plan durable.

        Raises:
            SupersededError: another run has taken over; the plan must not be run.
        """
        self._write("plans", plan.number, plan.to_json())
        self.check()

    def write_outcome(self, number: int, data: bytes) -> None:
        """Make the outcome of a batch durable.

        Raises:
            SupersededError: another run has taken over; the batch must not be committed.
        """
        self._write("outcomes", number, data)

    def write_decision(self, number: int, data: bytes) -> None:
        """Make the decision about a batch durable.

        Raises:
            SupersededError: another run has taken over, and may not have seen it; it must not be
                acted upon.
        """
        self._decisions_there = True
        self._write("decisions", number, data)
        self.check()

    def earlier_decision(self, number: int) -> bytes | None:
        """What the driver of the :meth:`last` plan decided about it, if it did."""
        return self._read("decisions", number, _ASK_TARGETS)

    def earlier_outcome(self, number: int) -> bytes | None:
        """The outcome that the driver of the :meth:`last` plan wrote for it, if it did."""
        return self._read("outcomes", number, _NEVER_MIND)

    def missing_decision(self, number: int) -> CheckpointError:
        """Return the error that a committed batch was decided on, and nobody knows how."""
        name = f"sparkstorm/{_name('decisions', self._read_epoch, number)}"
        why = f", since {self._damaged}, which came after it, is damaged" if self._damaged else ""
        return CheckpointError(
            f"batch {number} was applied and committed, and its decision {name} is gone{why}: its "
            f"messages would be applied once more. {_RESTORE}"
        )

    def purge(self) -> None:
        """Drop what no restart can need, once a new plan is written; nothing of later epochs."""
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
        """Raise the damage of a plan if its batch was run: what came of it is there, or in Spark.

        If Spark knows the batch only by an older plan of it, that one is still what is to be run.
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
        """Epoch and number of each file, up to this driver's own epoch."""
        matches = (_KEY.fullmatch(name) for name in self._files.names(folder))
        found = sorted((int(match[1]), int(match[2])) for match in matches if match)
        return [key for key in found if key[0] <= self._fence.epoch]


def _name(folder: str, epoch: int, number: int) -> str:
    return f"{folder}/{epoch}-{number}"
