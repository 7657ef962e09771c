r"""The codec: bytes and messages, for either end of a child's pipes; a machine without any I/O.

The parent's end sends ``ParentMessage`` and receives ``ChildMessage``; the child's end does the
reverse.

>>> parent, child = ParentCodec(), ChildCodec()
>>> list(child.receive(parent.send(Command("next"))))
[Command(command='next', id='')]
>>> list(parent.receive(b'hello\n' + child.send(Sync())))
[Stray(text='hello'), Sync()]
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, final

from sparkstorm.errors import ProtocolError
from sparkstorm.multilang.framing import Broken, Frame, JsonSerializer, Serializer, Stray
from sparkstorm.multilang.messages import (
    ChildMessage,
    Command,
    ParentMessage,
    Sync,
    from_child,
    from_parent,
    to_wire,
)
from sparkstorm.texts.showing import shown

__all__ = ["ChildCodec", "Command", "ParentCodec", "Sync"]

M = TypeVar("M")


@final
class ParentCodec:
    """The parent's end: ``ShellBolt`` and ``ShellSpout`` use it.

    Args:
        serializer: how messages are written.
    """

    def __init__(self, serializer: Serializer | None = None) -> None:
        self._serializer = serializer or JsonSerializer()
        self._reader = self._serializer.reader()

    def send(self, message: ParentMessage) -> bytes:
        """Return the bytes to write to the child.

        Raises:
            ValueError: a value in it has no form in this format.
        """
        return self._serializer.encode(to_wire(message))

    @property
    def unread(self) -> int:
        """How many of the last bytes received are the beginning of a message."""
        return self._reader.unread

    def receive(self, data: bytes) -> Iterator[ChildMessage | Stray]:
        """Take in bytes of the child; yield the messages that are complete, an error in its place.

        Raises:
            ProtocolError: a frame holds no message, or one that lacks a field.
        """
        return _messages(self._reader.feed(data), from_child, "child")

    def receive_end(self) -> Iterator[ChildMessage | Stray]:
        """The child closed its output: yield what is left."""
        return _messages(self._reader.close(), from_child, "child")


@final
class ChildCodec:
    """The child's end: for a component of ours that another parent has started.

    Args:
        serializer: how messages are written.
    """

    def __init__(self, serializer: Serializer | None = None) -> None:
        self._serializer = serializer or JsonSerializer()
        self._reader = self._serializer.reader()

    def send(self, message: ChildMessage) -> bytes:
        """Return the bytes to write to the parent.

        Raises:
            ValueError: a value in it has no form in this format.
        """
        return self._serializer.encode(to_wire(message))

    def receive(self, data: bytes) -> Iterator[ParentMessage | Stray]:
        """Take in bytes of the parent; yield the messages that are complete, an error in its place.

        Raises:
            ProtocolError: a frame holds no message, or one that lacks a field.
        """
        return _messages(self._reader.feed(data), from_parent, "parent")

    def receive_end(self) -> Iterator[ParentMessage | Stray]:
        """The parent closed the pipe: yield what is left."""
        return _messages(self._reader.close(), from_parent, "parent")


def _messages(
    frames: Iterable[Frame], read: Callable[[object], M], who: str
) -> Iterator[M | Stray]:
    for frame in frames:
        if isinstance(frame, Stray):
            yield frame
        elif isinstance(frame, Broken):
            raise ProtocolError(
                f"the {who} wrote {shown(frame.text)}, which is no message. Its standard output "
                f"belongs to the protocol: print to standard error, or send 'log'"
            )
        else:
            yield read(frame)
