"""Chunks and entries of state in Spark's state store."""

from collections.abc import Iterator
from typing import Any, final

from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessorHandle,
    ValueState,
)

__all__ = ["PartitionState", "TaskStore"]


@final
class PartitionState:
    """The state variables of a partition: chunks, few and large, and entries, many and small.

    A chunk is the value of a grouping key of its own, made of its name. To Spark a map of chunks
    would be the obvious thing, but to declare a map costs a task 20 ms more in each batch: so much
    is generated, and compiled, to encode its keys. Entries are iterated over, so they are a map.

    Args:
        handle: what Spark's processor is handed to declare its variables.
        has_entries: whether any task keeps entries.
    """

    def __init__(self, handle: StatefulProcessorHandle, *, has_entries: bool) -> None:
        self._client: Any = handle._statefulProcessorApiClient  # noqa: SLF001 - who sets the key
        self._chunks = handle.getValueState("chunks", "data binary")
        self._entries = None
        if has_entries:
            self._entries = handle.getMapState("entries", "name string", "data binary")
        self._key: tuple[str] = ("",)
        self._selected = self._key

    def begin(self, key: tuple[str]) -> None:
        """Start a batch with the grouping key that Spark has selected: the partition's."""
        self._key = self._selected = key

    def chunk(self, name: str) -> ValueState:
        """The variable of a chunk, until the next call."""
        self._select((name,))
        return self._chunks

    def entries(self) -> MapState:
        """The variable of the entries, until the next call."""
        assert self._entries is not None  # noqa: S101 - who keeps entries has declared them
        self._select(self._key)
        return self._entries

    def _select(self, key: tuple[str]) -> None:
        if key != self._selected:
            self._client.set_implicit_key(key)
            self._selected = key


@final
class TaskStore:
    """A task's part of a partition's state (an :class:`EntryStore`); commits with the batch.

    Args:
        state: the partition's.
        namespace: the task's.
    """

    def __init__(self, state: PartitionState, namespace: str) -> None:
        self._state = state
        self._namespace = namespace

    def get(self, key: str) -> bytes | None:
        """Return a chunk or an entry, or None."""
        name = self._name(key)
        if _is_entry(key):
            found = self._state.entries().getValue((name,))
        else:
            found = self._state.chunk(name).get()
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk or an entry."""
        name = self._name(key)
        if _is_entry(key):
            self._state.entries().updateValue((name,), (value,))
        else:
            self._state.chunk(name).update((value,))

    def delete(self, key: str) -> None:
        """Remove a chunk or an entry."""
        name = self._name(key)
        if _is_entry(key):
            self._state.entries().removeKey((name,))
        else:
            self._state.chunk(name).clear()

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The entries whose keys start so, in the order of the keys' names.

        Spark cannot look for a prefix: all entries of the partition are read, and passed over.
        """
        start = self._name(prefix)
        found = self._state.entries()
        if not found.exists():
            return
        for (name,), (data,) in found.iterator():
            if name.startswith(start):
                yield name.removeprefix(f"{self._namespace}/"), bytes(data)

    def _name(self, key: str) -> str:
        return f"{self._namespace}/{key}"


def _is_entry(key: str) -> bool:
    return key.startswith("key/")
