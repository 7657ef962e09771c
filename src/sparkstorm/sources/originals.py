"""Originals: the messages of a load as their spout emitted them, kept until they have ended."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body, Packet, PacketWriter
from sparkstorm.sources.packing import unpack_rows

__all__ = ["Original", "Originals"]

_SMALL_BYTES = 64 * 1024
"""The size below which the rows of ended messages are not worth dropping."""


class Original(NamedTuple):
    """One message as it was emitted.

    Attributes:
        stream: the stream.
        values: the values.
        direct: the task that ``emit_direct`` picked.
    """

    stream: str
    values: tuple[Any, ...]
    direct: int | None
    began: float
    """When the message was put into a batch, in seconds since 1970."""


@final
class Originals:
    """The messages of one load, as the packet of the load: about as small as can be.

    When three quarters have ended, the others are packed anew. So a tuple that a bolt holds for
    long does not pin a whole load.
    """

    __slots__ = ("_began", "_direct", "_packet", "_places", "_stream")

    def __init__(self, load: Load, began: float) -> None:
        self._stream = load.stream
        self._packet = load.packet or b""
        self._direct = np.frombuffer(load.direct, np.int32) if load.direct else None
        self._places: NDArray[np.int64] = np.arange(load.count)
        self._began = began

    @property
    def began(self) -> float:
        """When the load was made, in seconds since 1970."""
        return self._began

    @property
    def nbytes(self) -> int:
        """The size of the packet."""
        return len(self._packet)

    def of(self, places: Sequence[int]) -> list[Original]:
        """Return the messages at these places in the load."""
        rows = unpack_rows(self._packet)
        slots = np.searchsorted(self._places, np.array(places, np.int64)).tolist()
        return [
            Original(
                self._stream,
                rows[slot],
                None if self._direct is None else int(self._direct[slot]),
                self._began,
            )
            for slot in slots
        ]

    def wastes(self, left: int) -> bool:
        """Whether ended messages are worth dropping, if so many are left."""
        return 4 * left <= len(self._places) and self.nbytes >= _SMALL_BYTES

    def keep(self, places: Sequence[int]) -> None:
        """Drop all messages but those at these places."""
        slots = np.searchsorted(self._places, np.array(places, np.int64))
        columns = [column.take(slots) for column in Packet.decode(self._packet).columns()]
        body = Body.encode(columns, len(slots))
        self._packet = PacketWriter(0).data(
            stream=0, target=0, body=body, lineage=Lineage.untracked(len(slots))
        )
        self._places = self._places[slots]
        self._direct = None if self._direct is None else self._direct[slots]
