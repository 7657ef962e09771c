"""The sending of a batch by one task: from outboxes, acks and failures to packets."""

from collections.abc import Callable
from typing import final

from sparkstorm.acking.anchors import NO_PARENT, Parent
from sparkstorm.errors import EmitError
from sparkstorm.packets.inbox import ACKED, Inbox
from sparkstorm.packets.packet import Kind
from sparkstorm.tasks.collectors.emission import BasicEmission
from sparkstorm.tasks.dispatch import Delivery, Dispatcher, MisfitError
from sparkstorm.tasks.instance import BoltInstance
from sparkstorm.tasks.report import Report
from sparkstorm.verdicts import Failure

__all__ = ["Sending"]


@final
class Sending:
    """Sends all that a task emitted, acked, failed and held in a batch, once.

    Args:
        instance: the bolt, with the filled outboxes.
        inbox: the batch's tuples, with their fates.
        report: takes the loss of unanchored tuples.
        failure_of: makes the failure of a tuple from an error.
    """

    def __init__(
        self,
        instance: BoltInstance,
        inbox: Inbox,
        report: Report,
        failure_of: Callable[[BaseException], Failure],
    ) -> None:
        self._boxes = instance.boxes
        self._is_basic = isinstance(instance.emission, BasicEmission)
        self._inbox = inbox
        self._report = report
        self._failure_of = failure_of

    def run(self, dispatcher: Dispatcher) -> list[Delivery]:
        """Return the packets; tuples whose emits do not fit fail."""
        inbox = self._inbox
        # Each round drops all misfits that it found, so the loop ends after a few.
        while True:
            try:
                lineage = inbox.with_adopted()
                sent = dispatcher.dispatch(
                    lineage,
                    inbox.marks(ACKED),
                    self._boxes.values(),
                    inbox.anchor_lists,
                    inbox.groves,
                )
                break
            except MisfitError as misfit:
                self._drop_misfits(misfit)
        if lineage.is_tracked:
            sent += dispatcher.hold(Kind.HOLD, inbox.open_roots())
            sent += dispatcher.fail(inbox.failed())
            if inbox.resets:
                sent += dispatcher.hold(Kind.RESET, inbox.reset_roots())
        return sent

    def _drop_misfits(self, misfit: MisfitError) -> None:
        """Fail the inputs of unsendable emits; a basic bolt's other emits of them go too."""
        inbox = self._inbox
        box = self._boxes[misfit.box.key.stream]
        spelled = box.spell_parents()
        parents: dict[Parent, str] = {}
        for row, why in misfit.faults.items():
            parents.setdefault(spelled[row], why)
        inputs: dict[int, str] = {}
        for parent, why in parents.items():
            for one in inbox.anchors_of(parent):
                # An input with several misfits fails with the first one's reason.
                inputs.setdefault(one, why)
        failures = {
            why: self._failure_of(EmitError(f"{self._report.component!r}: {why}"))
            for why in parents.values()
        }
        for one in sorted(inputs):
            inbox.fail(one, failures[inputs[one]])
        if NO_PARENT in parents:
            self._report.log("error", f"an unanchored tuple was dropped: {misfit}")
        box.drop_rows(misfit.rows)
        if self._is_basic:
            for other in self._boxes.values():
                spelled = other.spell_parents()
                other.drop_rows([row for row, p in enumerate(spelled) if p in parents])
