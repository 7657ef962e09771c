"""Chunks of state in Spark's state store."""

from typing import final

from pyspark.sql.streaming.stateful_processor import MapState

__all__ = ["MapStateStore"]


@final
class MapStateStore:
    """A task's part of a partition's map state; commits with the batch."""

    def __init__(self, chunks: MapState, namespace: str) -> None:
        self._chunks = chunks
        self._namespace = namespace

    def get(self, key: str) -> bytes | None:
        """Return a chunk, or None."""
        found = self._chunks.getValue(self._name(key))
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk."""
        self._chunks.updateValue(self._name(key), (value,))

    def delete(self, key: str) -> None:
        """Remove a chunk."""
        self._chunks.removeKey(self._name(key))

    def _name(self, key: str) -> tuple[str]:
        return (f"{self._namespace}/{key}",)
