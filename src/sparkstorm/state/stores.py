"""Stores of chunks: the small interface of Spark's state store, and a store in memory."""

from collections.abc import Iterator
from typing import Protocol, final

__all__ = ["ChunkStore", "MemoryStore"]


class ChunkStore(Protocol):
    """The chunks and entries of one task, by name: Spark's state store, or a dictionary."""

    def get(self, key: str) -> bytes | None:
        """Return a chunk, or None."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk; the change commits with the batch."""
        ...

    def delete(self, key: str) -> None:
        """Remove a chunk."""
        ...

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield the chunks whose names begin with the prefix, in the order of the names."""
        ...


@final
class MemoryStore:
    """A store in memory that commits on demand, for the in-process runner."""

    def __init__(self) -> None:
        self._committed: dict[str, bytes] = {}
        self._chunks: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """Return a chunk, or None."""
        return self._chunks.get(key)

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk."""
        self._chunks[key] = value

    def delete(self, key: str) -> None:
        """Remove a chunk."""
        self._chunks.pop(key, None)

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield the chunks whose names begin with the prefix, in the order of the names."""
        return ((key, self._chunks[key]) for key in sorted(self._chunks) if key.startswith(prefix))

    def commit(self) -> None:
        """Make all changes so far permanent."""
        self._committed = dict(self._chunks)

    def copy(self) -> "MemoryStore":
        """Return another store with the same chunks."""
        other = MemoryStore()
        other._committed, other._chunks = dict(self._committed), dict(self._chunks)
        return other

    def rollback(self) -> None:
        """Drop all changes since the last commit."""
        self._chunks = dict(self._committed)
