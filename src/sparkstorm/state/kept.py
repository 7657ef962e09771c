"""Stored forms: the forms of values in a state, and in the chunks of the store."""

import io
import pickle
from typing import Any, Final, final

__all__ = ["ATOMS", "DELETED", "MISSING", "MOVED", "ChunkUnpickler", "Kept", "load_chunk"]

ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Types of immutable values: stored as they are."""

MISSING: Final[Any] = object()
"""Stands for an absent entry."""


@final
class Kept:
    """The stored form of a mutable value, as a pickle; or (``DELETED``) of a removed key."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return (Kept, (self.data,)) if self.data else "DELETED"


MOVED: Final = {
    "sparkstorm.execution.marks": "sparkstorm.state.kept",
    "sparkstorm.execution.held": "sparkstorm.state.held",
}
"""Today's names of modules that chunks of earlier versions name."""


class ChunkUnpickler(pickle.Unpickler):
    """Reads chunks, also of earlier versions, whose classes stood in other modules."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of a chunk's reference."""
        return super().find_class(MOVED.get(module, module), name)


def load_chunk(data: bytes) -> dict[Any, Any]:
    """Return the entries of a chunk; only our own workers write chunks."""
    chunk: dict[Any, Any] = ChunkUnpickler(io.BytesIO(data)).load()
    return chunk


DELETED: Final = Kept(b"")
"""The fresh entry of a key that the batch has removed."""
