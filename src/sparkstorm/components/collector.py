"""What components emit into: interfaces only, the engine brings the collectors."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from sparkstorm.tuples import Tuple
from sparkstorm.verdicts import Failure

__all__ = ["Anchors", "BasicCollector", "BoltCollector", "SpoutCollector"]

Anchors = Tuple | Sequence[Tuple] | None
"""The input tuples that a new tuple is caused by."""


class SpoutCollector(Protocol):
    """Handed to :meth:`Spout.open`; to be used on the thread that calls the spout."""

    def emit(
        self, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Emit a message. Without ``msg_id`` it is untracked: neither acked nor failed."""
        ...

    def emit_direct(
        self, task: int, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        ...

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology; nothing fails by it."""
        ...

    def give_up(self, msg_id: Hashable, failure: Failure) -> None:
        """Say that a failed message will not be emitted again; it is counted and reported."""
        ...


class BasicCollector(Protocol):
    """Handed to :meth:`BasicBolt.execute`; everything is anchored to the input."""

    def emit(self, values: Sequence[Any], *, stream: str = "default") -> None:
        """Emit a tuple caused by the input."""
        ...

    def emit_direct(self, task: int, values: Sequence[Any], *, stream: str = "default") -> None:
        """Emit to one task, on a stream declared direct."""
        ...

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        ...

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology; nothing fails by it."""
        ...


class BoltCollector(Protocol):
    """``self.collector`` of a :class:`Bolt`; every input must be acked or failed through it."""

    def emit(
        self, values: Sequence[Any], *, anchors: Anchors = None, stream: str = "default"
    ) -> None:
        """Emit a tuple; it joins the trees of its anchors, without anchors it is untracked.

        Whether the values fit the declared types is checked for all tuples at once, when the batch
        is sent: one that does not fit fails the messages of its anchors then.

        Raises:
            EmitError: the stream is not declared, or has another number of fields.
            TrackingError: an anchor was acked or failed before, or is not of this task.
        """
        ...

    def emit_direct(
        self, task: int, values: Sequence[Any], *, anchors: Anchors = None, stream: str = "default"
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        ...

    def receivers(self, stream: str = "default") -> list[int]:
        """Return the tasks that get the tuple that was emitted last to a stream.

        Storm's ``emit`` returns them. Here they are worked out when they are asked for, which
        takes some 50 microseconds.
        """
        ...

    def ack(self, tup: Tuple) -> None:
        """This task is done with the tuple.

        Raises:
            TrackingError: it was acked or failed before, or is not of this task.
        """
        ...

    def fail(self, tup: Tuple, reason: BaseException | str | None = None) -> None:
        """Fail every message that the tuple belongs to, at once; tell the error, or say why."""
        ...

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        ...

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology; nothing fails by it."""
        ...
