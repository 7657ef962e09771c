"""One batch of a shell bolt's task: tuples to the child, and the child's answers.

A tuple's id for the child is the number of the attachment and a number within the attachment. So
three kinds of id come back: ids of this attachment; ids of tuples held since an earlier batch; and
ids from a run of a batch that did not count. Tuples of such a run were sent again under other ids,
so the bolt skips the old ids: nothing can be acked or lost.

The child answers *markers* (heartbeats between the tuples) in turn, and so tells how far it has
read. The queue to the child stays bounded even if the child never acks. The end of a batch needs no
time-out: after the last answer, a child that works tuple by tuple has finished.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import Final, final

from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import HeldTuples, KeyValueState
from sparkstorm.errors import ComponentError, ProcessLostError
from sparkstorm.multilang.child import Child, ChildLostError, Heard
from sparkstorm.multilang.framing import Stray
from sparkstorm.multilang.messages import (
    Ack,
    Emit,
    Error,
    Fail,
    ShellTuple,
    Sync,
    TaskIds,
    Unknown,
)
from sparkstorm.multilang.shell import Shell
from sparkstorm.texts.showing import shown
from sparkstorm.texts.wording import counted
from sparkstorm.tuples import Tuple

__all__ = ["CHILD", "BoltBatch"]

_LOOK_EVERY: Final = 64
"""After so many tuples the batch reads the child's output, without waiting."""

_WAIT_SECS: Final = 1.0
_BACKOFFS_SECS: Final = (0.0, 0.1, 0.5)
"""Pauses before the next start of a child that ended without finishing a tuple, within a batch.
Then the batch's other tuples fail, and come back by the retry policy with longer pauses."""

_MOST_STRAYS: Final = 10
_ID_BITS: Final = 32
_UNTRACKED: Final = "-"
"""Ids of tuples without a message begin so. Emits anchored to such tuples alone are untracked."""

CHILD: Final = "child"
"""The note that names the child of the last batch, if there was a child."""


@final
class BoltBatch:
    """Tuples of one batch on their way through the child of a task.

    Args:
        shell: starts the child.
        context: the task's context.
        collector: the task's collector.
        held: tuples not yet acked, by the child's name and the tuple's id.
        notes: the task's notes, kept over batches.
        linger_secs: how long to wait for acks after the child has read everything.
    """

    def __init__(
        self,
        shell: Shell,
        context: TaskContext,
        collector: BoltCollector,
        *,
        held: HeldTuples,
        notes: KeyValueState,
        linger_secs: float,
    ) -> None:
        self._shell = shell
        self._context = context
        self._collector = collector
        self._held = held
        self._notes = notes
        self._linger_secs = linger_secs
        self._number = context.batch
        self._limit = context.config.shellbolt_max_pending
        self._marker_every = max(self._limit // 2, 1)
        self._gone = ""
        self._is_sent = False
        self._deaths = 0
        self._strays = 0
        self._unknown: set[str] = set()
        self._child: Child | None = None
        self._forget_child()
        self._attach()

    def is_of(self, number: int) -> bool:
        """Whether the id is of this batch."""
        return self._number == number

    def take(self, tup: Tuple) -> None:
        """Send a tuple to the child; wait if the child is far behind."""
        child = self._child
        if child is None:
            self._collector.fail(tup, self._gone)
            return
        self._sent += 1
        number = child.attachment << _ID_BITS | self._sent
        tuple_id = str(number) if tup.id else f"{_UNTRACKED}{number}"
        message = ShellTuple(
            id=tuple_id,
            comp=tup.component,
            stream=tup.stream,
            task=-1 if tup.is_tick else tup.task,
            values=tup.values,
        )
        try:
            child.send(message)
        except ValueError as error:
            self._collector.fail(tup, f"cannot be sent to {self._context.component!r}: {error}")
            return
        self._open[tuple_id] = tup
        if self._sent % self._marker_every == 0:
            self._mark()
        if self._sent % _LOOK_EVERY == 0:
            self._listen(0.0)
        if self._unread >= self._limit:
            child.expect()
        while self._child is child and self._unread >= self._limit:
            self._listen(_WAIT_SECS, must_speak=True)

    def finish(self) -> None:
        """Hear the child out, hold tuples not yet acked, and detach."""
        self._is_sent = True
        child = self._child
        if child is not None:
            self._mark()
            child.expect()
            while self._child is child and self._markers:
                self._listen(_WAIT_SECS, must_speak=True)
            self._linger()
        if self._child is not None:
            self._hold_open(self._child)
            self._notes_child(self._child)
            self._let_go(self._child)

    # --- the child -----------------------------------------------------------------------------

    def _forget_child(self) -> None:
        self._child = None
        self._open: dict[str, Tuple] = {}
        self._dropped: set[str] = set()
        self._markers: deque[int] = deque()
        self._sent = self._read = self._done = 0

    def _attach(self, why: str = "its process is gone") -> None:
        """Attach to the task's child; tuples held by another child fail."""
        try:
            child = Child(self._shell, self._context)
            if not child.is_new and self._notes.get(CHILD, child.identity) != child.identity:
                # The task was elsewhere meanwhile, or the batch that started this child did not
                # count: its memory is not the task's.
                child.kill()
                child = Child(self._shell, self._context)
        except ProcessLostError as error:
            self._gone = str(error)
            self._collector.report_error(error)
            return
        self._child = child
        if child.before:
            why = f"its process has ended: {child.before}"
        self._fail_held_of_others(child.identity, why)

    def _lose_child(self, why: str) -> None:
        """Fail the child's tuples, end its process group, and start another child."""
        child, lost = self._child, self._open
        assert child is not None  # noqa: S101 - whoever heard this heard it from a child
        told = f"{why}: {counted(len(lost), 'tuple')} of it fail" if lost else why
        self._collector.report_error(told)
        for tup in lost.values():
            self._collector.fail(tup, why)
        self._deaths = 0 if self._done else self._deaths + 1
        self._end(child)
        self._forget_child()
        if self._is_sent or self._deaths >= len(_BACKOFFS_SECS):
            # Another child would have nothing to do now: the next batch with a tuple starts it.
            self._gone = f"{why} (and so did {self._deaths - 1} before it)"
            self._notes.delete(CHILD)
            self._fail_held_of_others("", why)
            return
        time.sleep(_BACKOFFS_SECS[self._deaths])
        self._attach(why)

    def _end(self, child: Child) -> None:
        try:
            child.kill()
        except ProcessLostError as error:  # its keeper has ended, and the child with it
            self._collector.report_error(error)

    def _let_go(self, child: Child) -> None:
        self._child = None
        child.detach()

    def _notes_child(self, child: Child) -> None:
        if self._notes.get(CHILD) != child.identity:
            self._notes.put(CHILD, child.identity)

    # --- waiting -------------------------------------------------------------------------------

    @property
    def _unread(self) -> int:
        """How many tuples the child may not have read yet."""
        return self._sent - max(self._read, self._done)

    def _mark(self) -> None:
        if self._child is not None:
            self._child.send_heartbeat()
            self._markers.append(self._sent)

    def _listen(self, secs: float, *, must_speak: bool = False) -> bool:
        """Carry out the child's messages; return whether a tuple was finished."""
        child, done = self._child, self._done
        if child is None:
            return False
        try:
            for message in child.hear(secs, must_speak=must_speak):
                self._obey(message, child)
        except (ChildLostError, ProcessLostError) as error:
            self._lose_child(str(error))
            return False
        return self._done > done

    def _linger(self) -> None:
        """Wait for acks after the child has read everything and works on in the background."""
        until = time.monotonic() + self._linger_secs
        while self._child is not None and self._open:
            left = until - time.monotonic()
            if left <= 0:
                break
            if self._listen(left):
                until = time.monotonic() + self._linger_secs

    # --- what the child says -------------------------------------------------------------------

    def _obey(self, message: Heard, child: Child) -> None:
        match message:
            case Emit():
                self._emit(message, child)
            case Ack(tuple_id):
                tup = self._finished(tuple_id, child)
                if tup is not None:
                    self._collector.ack(tup)
            case Fail(tuple_id):
                tup = self._finished(tuple_id, child)
                if tup is not None:
                    self._collector.fail(tup, "the process failed it")
            case Sync() if self._markers and not child.replaying:
                self._read = self._markers.popleft()
            case Error(text):
                self._collector.report_error(text)
            case Stray(text):
                self._tell_stray(text)
            case Unknown(command) if command not in self._unknown:
                self._unknown.add(command)
                self._collector.report_error(
                    f"the process sent the command {shown(command)}, which no bolt has: it is "
                    f"passed over"
                )
            case _:
                pass

    def _emit(self, message: Emit, child: Child) -> None:
        anchors = self._anchors(message.anchors, child)
        if anchors is None or (child.replaying and not anchors):
            tasks: tuple[int, ...] = ()
        else:
            tasks = self._emit_anchored(message, anchors)
        if message.task is None and message.need_task_ids and not child.replaying:
            child.send(TaskIds(tasks))

    def _emit_anchored(self, message: Emit, anchors: Sequence[Tuple]) -> tuple[int, ...]:
        """Emit; if the values do not fit the declared stream, the anchors fail."""
        collector = self._collector
        try:
            if message.task is None:
                collector.emit(message.values, anchors=anchors, stream=message.stream)
            else:
                collector.emit_direct(
                    message.task, message.values, anchors=anchors, stream=message.stream
                )
        except ComponentError as error:
            collector.report_error(error)
            for tup in anchors:
                self._drop(tup)
                collector.fail(tup, error)
            return ()
        if message.task is None and message.need_task_ids:
            return tuple(collector.receivers(message.stream))
        return ()

    def _anchors(self, ids: Sequence[str], child: Child) -> list[Tuple] | None:
        """Return the tuples of these ids; None if an id is of a run that did not count.

        Then the other tuples fail, since their common emit is skipped.
        """
        found, strangers = [], False
        for tuple_id in ids:
            tup = self._open.get(tuple_id) or self._held_tuple(tuple_id, child)
            if tup is not None:
                found.append(tup)
            elif not self._is_an_id(tuple_id):
                raise ChildLostError(
                    f"its process anchored an emit to {shown(tuple_id)}, which is no tuple's id"
                )
            elif self._is_mine(tuple_id, child):
                raise ChildLostError(
                    f"its process anchored an emit to {tuple_id!r} after it had acked or failed it"
                )
            else:
                strangers = strangers or not tuple_id.startswith(_UNTRACKED)
        if not strangers:
            return found
        for tup in found:
            self._drop(tup)
            self._collector.fail(tup, "an emit was anchored to it and to a tuple of a lost run")
        return None

    def _finished(self, tuple_id: str, child: Child) -> Tuple | None:
        """Return the acked or failed tuple, once; None if the answer does not count."""
        tup = self._open.pop(tuple_id, None)
        if tup is not None:
            self._done += 1
            return tup
        tup = self._held_tuple(tuple_id, child)
        if tup is None and tuple_id in self._dropped:  # failed here, for a bad emit
            self._dropped.remove(tuple_id)
        elif tup is None and self._is_mine(tuple_id, child):
            self._collector.report_error(f"the process acked or failed {tuple_id!r} twice")
        return tup

    def _held_tuple(self, tuple_id: str, child: Child) -> Tuple | None:
        found = self._held.get((child.identity, tuple_id))
        return found[0] if found else None

    @staticmethod
    def _is_an_id(tuple_id: str) -> bool:
        """Whether some tuple may have had this id, in this or another run."""
        number = tuple_id.removeprefix(_UNTRACKED)
        return number.isascii() and number.isdigit() and int(number) >= 1 << _ID_BITS

    def _is_mine(self, tuple_id: str, child: Child) -> bool:
        """Whether a tuple of this attachment had this id."""
        if not self._is_an_id(tuple_id) or child.replaying:
            return False
        number = int(tuple_id.removeprefix(_UNTRACKED))
        return child.attachment << _ID_BITS < number <= child.attachment << _ID_BITS | self._sent

    def _tell_stray(self, text: str) -> None:
        self._strays += 1
        if self._strays <= _MOST_STRAYS:
            self._collector.report_error(
                f"the process printed {text[:500]!r}: its standard output belongs to the "
                f"protocol, so print to standard error"
            )

    # --- tuples that stay open -----------------------------------------------------------------

    def _hold_open(self, child: Child) -> None:
        for tuple_id, tup in self._open.items():
            if tuple_id.startswith(_UNTRACKED):
                self._collector.ack(tup)  # no message waits for it
            else:
                self._held.add((child.identity, tuple_id), tup)

    def _fail_held_of_others(self, identity: str, why: str) -> None:
        for key in list(self._held.keys()):
            if key[0] != identity:
                for tup in self._held.get(key):
                    self._collector.fail(tup, why)

    def _drop(self, tup: Tuple) -> None:
        for tuple_id, one in list(self._open.items()):
            if one is tup:
                del self._open[tuple_id]
                self._dropped.add(tuple_id)
