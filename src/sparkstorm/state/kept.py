"""Kept values: the forms that a value has in a state, and in the chunks of the store."""

import io
import pickle
from typing import Any, Final, final

__all__ = ["ATOMS", "DELETED", "MISSING", "MOVED", "ChunkUnpickler", "Kept", "load_chunk"]

ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Types whose values cannot change in place: kept as they are."""

MISSING: Final[Any] = object()
"""Stands for an entry that is not there."""


@final
class Kept:
    """A value that is not kept as it is: pickled, or (``DELETED``) gone."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return (Kept, (self.data,)) if self.data else "DELETED"


MOVED: Final = {
    "sparkstorm.execution.marks": "sparkstorm.state.kept",
    "sparkstorm.execution.held": "sparkstorm.state.held",
}
"""Where the modules are today that chunks of earlier versions name."""


class ChunkUnpickler(pickle.Unpickler):
    """Reads chunks, those of earlier versions too: their classes stood in other modules then."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class that a chunk names."""
        return super().find_class(MOVED.get(module, module), name)


def load_chunk(data: bytes) -> dict[Any, Any]:
    """Return the entries of a chunk; only our own workers write chunks."""
    chunk: dict[Any, Any] = ChunkUnpickler(io.BytesIO(data)).load()
    return chunk


DELETED: Final = Kept(b"")
"""The fresh entry of a key that the batch has removed."""
