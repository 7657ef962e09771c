"""The collectors that components emit into: they record emits and acks, and send nothing.

Collectors are on the hot path: a call per tuple. So checks that work on all tuples at once (types,
hashes) wait until the outboxes are dispatched.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from sparkstorm.acking.anchors import MANY_ROOTS, NO_PARENT, Parent, parent_of_list
from sparkstorm.errors import EmitError, TrackingError
from sparkstorm.packets.inbox import ACKED, Inbox
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.tasks.collectors.outbox import Outbox
from sparkstorm.tasks.collectors.stopwatch import Stopwatch
from sparkstorm.tasks.report import Report
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import Tracebacks, is_mistake, reason_of
from sparkstorm.tuples import Tuple
from sparkstorm.verdicts import Failure, Reason

__all__ = ["BasicEmission", "BoltEmission"]


def _nobody(box: Outbox) -> list[int]:
    return []


class _Emission:
    """The common part of both collectors: the outboxes, the inbox and the report.

    Attributes:
        watch: times the calls of ``execute``.
        late_acks: the tuples acked outside of their own ``execute``, each with the time.
    """

    def __init__(self, component: str, boxes: dict[str, Outbox], report: Report) -> None:
        self._component = component
        self._boxes = boxes
        self._default = boxes.get(DEFAULT_STREAM)
        self.receivers_of_last: Callable[[Outbox], list[int]] = _nobody
        self.begin(Inbox.empty(), report)

    def begin(self, inbox: Inbox, report: Report) -> None:
        """Start a batch."""
        self._inbox = inbox
        self._report = report
        self.watch = Stopwatch()
        self.late_acks: list[tuple[int, float]] = []

    def end(self) -> None:
        """End a batch: keep none of its tuples alive."""
        self.begin(Inbox.empty(), self._report)

    def position(self) -> int:
        """Return the position of the executing input; NO_PARENT outside of ``execute``."""
        raise NotImplementedError

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        self._inbox.resets.append(self._mine(tup, "reset the time-out of"))

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to the people who watch the topology; no tuple fails."""
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
        """Return the tuple's position, after checking that the tuple is still usable."""
        # isinstance would ask the object, which may be a user's with any __class__.
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
    """The collector of basic bolts: every emit is anchored to the current input.

    Attributes:
        current: the position of the executing input; NO_PARENT outside ``execute``.
        rows: the rows of the default stream, here for quick emits.
        ends: the number of rows after each input.
    """

    def begin(self, inbox: Inbox, report: Report) -> None:
        """Start a batch."""
        super().begin(inbox, report)
        self.current = NO_PARENT
        box = self._default if self._default is not None and self._default.takes >= 0 else None
        self._takes = -1 if box is None else box.takes
        self.rows: list[Any] = [] if box is None else box.rows
        self.ends: list[int] = [] if box is None else box.ends

    def position(self) -> int:
        """Return the position of the executing input; NO_PARENT outside of ``execute``."""
        return self.current

    def emit(self, values: Sequence[Any], *, stream: str = DEFAULT_STREAM) -> None:
        """Emit a tuple, anchored to the input."""
        kind = type(values)
        is_row = kind is list or kind is tuple
        if is_row and stream == DEFAULT_STREAM and len(values) == self._takes:  # the usual case
            self.rows.append(values[0] if self._takes == 1 else tuple(values))
        else:
            self._box(stream).add(values, self.current)

    def emit_direct(
        self, task: int, values: Sequence[Any], *, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emit to a task, on a stream declared direct."""
        self._box(stream).add(values, self.current, task)

    def drop_current(self) -> None:
        """Drop the emits of the current input, whose ``execute`` raised."""
        del self.rows[self.ends[-1] if self.ends else 0 :]
        for box in self._boxes.values():
            # The default stream is cut above, by its ends: quick emits note no parents.
            if box.rows is self.rows:
                continue
            length = len(box)
            while length and box.parents[length - 1] == self.current:
                length -= 1
            box.drop_since(length)

    def end_input(self) -> None:
        """End the current input: later emits belong to another."""
        self.ends.append(len(self.rows))

    def skip(self, indexes: Iterable[int]) -> None:
        """Note skipped inputs, in ascending order, which emitted nothing."""
        for index in indexes:
            self.ends.insert(index, self.ends[index - 1] if index else 0)


class BoltEmission(_Emission):
    """The collector of bolts that anchor, ack and fail by themselves.

    Attributes:
        input: the executing tuple while open; else None. The last long list of anchors is cached,
            because the results of a window all have the same.
    """

    def begin(self, inbox: Inbox, report: Report) -> None:
        """Start a batch."""
        super().begin(inbox, report)
        self.input: Tuple | None = None
        self._tracebacks = Tracebacks()
        self._status = inbox.status
        self._anchors: tuple[Tuple, ...] = ()
        self._parent_of_anchors = NO_PARENT
        self._inputs = np.empty(0, np.int64)

    def position(self) -> int:
        """Return the position of the executing input; NO_PARENT after its ack, and outside."""
        return NO_PARENT if self.input is None else self.input._index  # noqa: SLF001

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
        """Emit to a task, on a stream declared direct."""
        self._box(stream).add(values, self._parent(anchors), task)

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple: this task is done with the tuple."""
        mine = self.input
        if tup is mine:  # nearly always
            self.input = None
            self._status[mine._index] = ACKED  # noqa: SLF001
            return
        index = self._mine(tup, "ack")
        self._inbox.others.append(index)
        self._status[index] = ACKED
        if self.watch.is_on:
            self.late_acks.append((index, perf_counter()))

    def fail(self, tup: Tuple, reason: object = None) -> None:
        """Fail every message of the tuple at once; the reason may be an exception."""
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
                final=isinstance(reason, BaseException) and is_mistake(reason),
            ),
        )

    def _parent(self, anchors: Tuple | Sequence[Tuple] | None) -> Parent:
        if anchors is None:
            return NO_PARENT
        if anchors.__class__ is Tuple:
            return self._mine(anchors, "anchor to")
        with suppress(TypeError, AttributeError):  # no sequence, or not of tuples
            return self._parent_of_many(tuple(anchors))
        raise EmitError(f"anchors of {self._component!r} are tuples, not {shown(anchors)}")

    def _parent_of_many(self, anchors: tuple[Tuple, ...]) -> Parent:
        is_long = len(anchors) >= MANY_ROOTS
        is_known = is_long and (anchors is self._anchors or anchors == self._anchors)
        # An anchor must be open: the bolt may have acked one since the last emit.
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
