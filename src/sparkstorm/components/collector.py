"""Collectors: the interfaces components emit through. The engine brings the implementations."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from sparkstorm.tuples import Tuple
from sparkstorm.verdicts import Failure

__all__ = ["Anchors", "BasicCollector", "BoltCollector", "SpoutCollector"]

Anchors = Tuple | Sequence[Tuple] | None
"""The input tuples that caused a new tuple."""


class SpoutCollector(Protocol):
    """The collector handed to :meth:`Spout.open`; use it only on the thread calling the spout."""

    def emit(
        self, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Emit a message. Without ``msg_id`` the message is untracked: no ack, no fail."""
        ...

    def emit_direct(
        self, task: int, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        ...

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to people watching the topology. No message fails."""
        ...

    def give_up(
        self, msg_id: Hashable, failure: Failure, *, source: Mapping[str, Any] | None = None
    ) -> None:
        """Tell the engine to count and report a failed message as given up.

        The spout will not emit the message again. On return the dead letter is written.

        Args:
            msg_id: the message; one that was never emitted is allowed, too.
            failure: why.
            source: facts for the dead letter of a message without values, such as its bytes.
        """
        ...


class BasicCollector(Protocol):
    """The collector handed to :meth:`BasicBolt.execute`; it anchors every emit to the input."""

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
        """Show an error to people watching the topology. No message fails."""
        ...


class BoltCollector(Protocol):
    """The ``self.collector`` of a :class:`Bolt`; ack or fail every input through it."""

    def emit(
        self, values: Sequence[Any], *, anchors: Anchors = None, stream: str = "default"
    ) -> None:
        """Emit a tuple into the trees of its anchors. Without anchors the tuple is untracked.

        The engine checks values against declared types when it sends the batch, for all tuples at
        once. A value of a wrong type then fails the messages of the tuple's anchors.

        Raises:
            EmitError: the stream is not declared, or has another number of fields.
            TrackingError: an anchor is already acked or failed, or belongs to another task.
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
        """Ack a tuple: this task is done with it.

        Raises:
            TrackingError: the tuple is already acked or failed, or belongs to another task.
        """
        ...

    def fail(self, tup: Tuple, reason: BaseException | str | None = None) -> None:
        """Fail every message of the tuple at once; give the error, or a reason as text."""
        ...

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        ...

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to people watching the topology. No message fails."""
        ...
