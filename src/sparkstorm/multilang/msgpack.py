"""Messages in msgpack, one behind the other, as pystorm reads and writes them."""

from typing import Any, final

from sparkstorm.errors import EnvironmentFault, ProtocolError
from sparkstorm.multilang.framing import Broken, Frame, Stray, Wire

__all__ = ["MsgpackSerializer"]


@final
class MsgpackSerializer:
    """pystorm's second serializer; needs ``pip install 'sparkstorm[msgpack]'``."""

    def encode(self, wire: Wire) -> bytes:
        """Return the bytes of one message."""
        try:
            data: bytes = _library().packb(wire)
        except (TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"msgpack cannot hold it: {error}") from None
        return data

    def reader(self) -> "MsgpackReader":
        """Return a reader for one stream."""
        return MsgpackReader()


@final
class MsgpackReader:
    """Reads messages of msgpack; bytes that begin none are an error, since no end is marked.

    Printed ASCII reads as small numbers, one for each character, so it is told from messages.
    """

    def __init__(self) -> None:
        library = _library()
        self._unpacker: Any = library.Unpacker(strict_map_key=False, max_buffer_size=1 << 29)
        self._fed = self._complete = 0
        self._printed = ""

    def feed(self, data: bytes) -> list[Frame]:
        """Take in bytes and return the objects that are complete."""
        found: list[Frame] = []
        try:
            self._unpacker.feed(data)
            self._fed += len(data)
            for wire in self._unpacker:
                self._complete = int(self._unpacker.tell())
                if type(wire) is int and 0 <= wire < 128:
                    self._printed += chr(wire)
                    continue
                if self._printed:
                    found.append(Stray(self._printed.strip()))
                    self._printed = ""
                if not isinstance(wire, dict | list):
                    found.append(Broken(data[:200].decode(errors="replace").strip()))
                    break
                found.append(wire)
        except Exception as error:
            raise ProtocolError(f"the child wrote what is no msgpack: {error}") from error
        return found

    @property
    def unread(self) -> int:
        """How many of the last bytes are the beginning of a message."""
        return self._fed - self._complete

    def close(self) -> list[Frame]:
        """Return what was printed at last; a message that was begun is lost."""
        return [Stray(self._printed.strip())] if self._printed else []


def _library() -> Any:
    try:
        import msgpack
    except ImportError:
        raise EnvironmentFault(
            "the msgpack serializer needs its library: pip install 'sparkstorm[msgpack]'"
        ) from None
    return msgpack
