"""The collectors that components emit into: they record emits and acks, and send nothing.

They are on the hot path: one call per tuple. What can be checked for all tuples at once (types,
hashes) is checked when the outboxes are dispatched.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sparkstorm.acking.anchors import MANY_ROOTS, NO_PARENT, Parent, parent_of_list
from sparkstorm.errors import EmitError, TrackingError
from sparkstorm.packets.inbox import ACKED, Inbox
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.tasks.collectors.outbox import Outbox
from sparkstorm.tasks.report import Report
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import Tracebacks, reason_of
from sparkstorm.tuples import Tuple
from sparkstorm.verdicts import Failure, Reason

__all__ = ["BasicEmission", "BoltEmission"]


def _nobody(box: Outbox) -> list[int]:
    return []


class _Emission:
    """What both collectors share: the outboxes, the inbox, and the report."""

    def __init__(self, component: str, boxes: dict[str, Outbox], report: Report) -> None:
        self._component = component
        self._boxes = boxes
        self._default = boxes.get(DEFAULT_STREAM)
        self._report = report
        self.receivers_of_last: Callable[[Outbox], list[int]] = _nobody
        self.begin(Inbox.empty())

    def begin(self, inbox: Inbox) -> None:
        """Start a batch."""
        self._inbox = inbox

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        self._inbox.resets.append(self._mine(tup, "reset the time-out of"))

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology; nothing fails by it."""
        self._report.log("error", reason_of(error))

    def receivers(self, stream: str = DEFAULT_STREAM) -> list[int]:
        """Return the tasks that get the tuple that was emitted last to a stream."""
        return self.receivers_of_last(self._box(stream))

    def _box(self, stream: str) -> Outbox:
        box = self._boxes.get(stream)
        if box is None:
            known = ", ".join(sorted(self._boxes)) or "none"
            raise EmitError(
                f"{self._component!r} emits to stream {shown(stream)}; it declares {known}"
            )
        return box

    def _mine(self, tup: Tuple, verb: str) -> int:
        """Return the tuple's position, after checking that it may still be used."""
        if type(tup) is not Tuple and not issubclass(type(tup), Tuple):
            raise TypeError(f"{self._component!r} tried to {verb} {shown(tup)}, which is no tuple")
        if tup._origin.inbox is not self._inbox:  # type: ignore[attr-defined]  # noqa: SLF001
            raise TrackingError(
                f"{self._component!r} tried to {verb} {shown(tup)}, which this task did not "
                f"receive in this batch: ack in finish_batch, or hold it in state.tuples(name) "
                f"and take it from there"
            )
        index = tup._index  # noqa: SLF001
        state = self._inbox.status[index]
        if state:
            done = "acked" if state == ACKED else "failed"
            raise TrackingError(
                f"{self._component!r} tried to {verb} {shown(tup)}, which it has already {done}"
            )
        return index


class BasicEmission(_Emission):
    """The collector of basic bolts: everything is anchored to the current input.

    ``current`` is the position of the input that is being executed, NO_PARENT outside ``execute``.
    What every emit to the default stream needs stands beside it: what it takes, and its ``rows``.
    ``ends`` takes their number after each input.
    """

    def begin(self, inbox: Inbox) -> None:
        """Start a batch."""
        super().begin(inbox)
        self.current = NO_PARENT
        box = self._default if self._default is not None and self._default.takes >= 0 else None
        self._takes = -1 if box is None else box.takes
        self.rows: list[Any] = [] if box is None else box.rows
        self.ends: list[int] = [] if box is None else box.ends

    def emit(self, values: Sequence[Any], *, stream: str = DEFAULT_STREAM) -> None:
        """Emit a tuple caused by the input."""
        if stream == DEFAULT_STREAM and len(values) == self._takes:  # the usual case
            self.rows.append(values[0] if self._takes == 1 else tuple(values))
        else:
            self._box(stream).add(values, self.current)

    def emit_direct(
        self, task: int, values: Sequence[Any], *, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        self._box(stream).add(values, self.current, task)

    def drop_current(self) -> None:
        """Forget what the current input has emitted so far: its ``execute`` raised."""
        del self.rows[self.ends[-1] if self.ends else 0 :]
        for box in self._boxes.values():
            if box.rows is self.rows:
                continue
            length = len(box)
            while length and box.parents[length - 1] == self.current:
                length -= 1
            box.drop_since(length)

    def end_input(self) -> None:
        """The current input was executed: what comes next belongs to another."""
        self.ends.append(len(self.rows))

    def skip(self, indexes: Iterable[int]) -> None:
        """Take note of inputs, in ascending order, that were passed over: they emitted nothing."""
        for index in indexes:
            self.ends.insert(index, self.ends[index - 1] if index else 0)


class BoltEmission(_Emission):
    """The collector of bolts that anchor, ack and fail by themselves.

    ``input`` is the tuple that is being executed, as long as it is open; else None. The last long
    list of anchors is remembered: the results of a window all have the same.
    """

    def begin(self, inbox: Inbox) -> None:
        """Start a batch."""
        super().begin(inbox)
        self.input: Tuple | None = None
        self._tracebacks = Tracebacks()
        self._status = inbox.status
        self._anchors: tuple[Tuple, ...] = ()
        self._parent_of_anchors = NO_PARENT
        self._inputs = np.empty(0, np.int64)

    def emit(
        self,
        values: Sequence[Any],
        *,
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit a tuple; it joins the trees of its anchors."""
        box = self._default if stream is DEFAULT_STREAM else None
        if box is None:
            box = self._box(stream)
        box.add(values, self._parent(anchors))

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        *,
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        self._box(stream).add(values, self._parent(anchors), task)

    def ack(self, tup: Tuple) -> None:
        """This task is done with the tuple."""
        mine = self.input
        if tup is mine:  # nearly always
            self.input = None
            self._status[mine._index] = ACKED  # noqa: SLF001
            return
        index = self._mine(tup, "ack")
        self._inbox.others.append(index)
        self._status[index] = ACKED

    def fail(self, tup: Tuple, reason: object = None) -> None:
        """Fail every message that the tuple belongs to, at once; the reason may be an exception."""
        index = self._mine(tup, "fail")
        if tup is self.input:
            self.input = None
        self._inbox.fail(
            index,
            Failure(
                reason=Reason.FAILED,
                component=self._component,
                task=self._inbox.task,
                message="the bolt called fail" if reason is None else reason_of(reason),
                traceback=self._traceback(reason),
            ),
        )

    def _parent(self, anchors: Tuple | Sequence[Tuple] | None) -> Parent:
        if anchors is None:
            return NO_PARENT
        if anchors.__class__ is Tuple:
            return self._mine(anchors, "anchor to")
        with suppress(TypeError, AttributeError):  # none, or not of tuples
            return self._parent_of_many(tuple(anchors))
        raise EmitError(f"anchors of {self._component!r} are tuples, not {shown(anchors)}")

    def _parent_of_many(self, anchors: tuple[Tuple, ...]) -> Parent:
        is_long = len(anchors) >= MANY_ROOTS
        is_known = is_long and (anchors is self._anchors or anchors == self._anchors)
        if is_known and self._inbox.are_open(self._inputs):
            return self._parent_of_anchors
        inputs = tuple({self._mine(one, "anchor to"): None for one in anchors})
        if len(inputs) < 2:
            return inputs[0] if inputs else NO_PARENT
        lists = self._inbox.anchor_lists
        lists.append(inputs)
        parent = parent_of_list(len(lists) - 1)
        if is_long:
            self._anchors, self._parent_of_anchors = anchors, parent
            self._inputs = np.array(inputs, np.int64)
        return parent

    def _traceback(self, reason: object) -> str:
        if not issubclass(type(reason), BaseException):
            return ""
        return self._tracebacks.text(reason)  # type: ignore[arg-type]
