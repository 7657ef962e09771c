"""What a driver writes down batch by batch, and what it finds of an earlier one.

``plans/E-N`` is the plan of batch N by the driver of epoch E, ``outcomes/E-N`` what came out, and
``decisions/E-N`` what was decided about it if batches happen exactly once. With the epoch in its
name, nothing that a superseded driver is late to write can replace what its successor wrote, or
pass for it.
"""

from typing import final

from sparkstorm.delivery.files import CheckpointFiles
from sparkstorm.delivery.lease import Fence
from sparkstorm.delivery.plans import BatchPlan

__all__ = ["Journal"]

_KEPT = 2
"""The newest plan holds what is owed before it; one more is kept for people who look."""


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
        self._decisions_there = True  # perhaps, of an earlier driver

    def check(self) -> None:
        """Make sure that this driver may still write.

        Raises:
            SupersededError: another run has taken over.
        """
        self._fence.check()

    def last(self) -> BatchPlan | None:
        """The last plan of the driver before this one; of the newest epoch, if there are several.

        A plan is only told to Spark after it is written and the epoch is found to be still the
        newest. So one of an older epoch and a higher number was never run.

        Raises:
            SupersededError: another run has taken over; what is there may be newer than this run.
        """
        found = self._sorted("plans")
        if found:
            self._read_epoch = found[-1][0]
        data = self._files.read(_name("plans", *found[-1])) if found else None
        self.check()
        return None if data is None else BatchPlan.from_json(data)

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
        return self._files.read(_name("decisions", self._read_epoch, number))

    def earlier_outcome(self, number: int) -> bytes | None:
        """The outcome that the driver of the :meth:`last` plan wrote for it, if it did."""
        return self._files.read(_name("outcomes", self._read_epoch, number))

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
        self._files.write(_name(folder, self._fence.epoch, number), data)

    def _sorted(self, folder: str) -> list[tuple[int, int]]:
        """Epoch and number of each file, up to this driver's own epoch."""
        names = (name.split("-") for name in self._files.names(folder))
        found = sorted((int(epoch), int(number)) for epoch, number in names)
        return [key for key in found if key[0] <= self._fence.epoch]


def _name(folder: str, epoch: int, number: int) -> str:
    return f"{folder}/{epoch}-{number}"
