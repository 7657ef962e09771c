"""Chunks and entries of state in Spark's state store."""

from collections.abc import Iterator
from typing import final

from pyspark.sql.streaming.stateful_processor import MapState

__all__ = ["MapStateStore"]


@final
class MapStateStore:
    """A task's part of a partition's map states; commits with the batch.

    Args:
        chunks: few and large.
        entries: many and small, apart from the chunks since they are iterated over; None if no
            task keeps any.
        namespace: the task's.
    """

    def __init__(self, chunks: MapState, entries: MapState | None, namespace: str) -> None:
        self._chunks = chunks
        self._entries = entries
        self._namespace = namespace

    def get(self, key: str) -> bytes | None:
        """Return a chunk or an entry, or None."""
        found = self._map_of(key).getValue(self._name(key))
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk or an entry."""
        self._map_of(key).updateValue(self._name(key), (value,))

    def delete(self, key: str) -> None:
        """Remove a chunk or an entry."""
        self._map_of(key).removeKey(self._name(key))

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The entries whose keys start so, in the order of the keys' names.

        Spark cannot look for a prefix: all entries of the partition are read, and passed over.
        """
        (start,) = self._name(prefix)
        found = self._map_of(prefix)
        if not found.exists():
            return
        for (name,), (data,) in found.iterator():
            if name.startswith(start):
                yield name.removeprefix(f"{self._namespace}/"), bytes(data)

    def _map_of(self, key: str) -> MapState:
        return self._entries if self._entries is not None and key[:4] == "key/" else self._chunks

    def _name(self, key: str) -> tuple[str]:
        return (f"{self._namespace}/{key}",)
