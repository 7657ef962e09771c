"""Chunks and entries of state in Spark's state store."""

from collections.abc import Iterator
from typing import Any, final

from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessorHandle,
    ValueState,
)

from sparkstorm.spark.internals import state_client

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
        self._client: Any = state_client(handle)  # sets the key
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

    def entry(self, name: str) -> "_Entry":
        """The variable of an entry, until the next call."""
        return _Entry(self.entries(), name)

    def entries(self) -> MapState:
        """The variable of all entries, until the next call."""
        assert self._entries is not None  # noqa: S101 - who keeps entries has declared them
        self._select(self._key)
        return self._entries

    def _select(self, key: tuple[str]) -> None:
        if key != self._selected:
            self._client.set_implicit_key(key)
            self._selected = key


@final
class _Entry:
    """One key of a map, used as the variable of a chunk is."""

    def __init__(self, entries: MapState, name: str) -> None:
        self._entries = entries
        self._key = (name,)

    def get(self) -> tuple[Any, ...] | None:
        """Return its value, or None."""
        found: tuple[Any, ...] | None = self._entries.getValue(self._key)
        return found

    def update(self, value: tuple[bytes]) -> None:
        """Set its value."""
        self._entries.updateValue(self._key, value)

    def clear(self) -> None:
        """Remove it."""
        self._entries.removeKey(self._key)


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
        found = self._variable(key).get()
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk or an entry."""
        self._variable(key).update((value,))

    def delete(self, key: str) -> None:
        """Remove a chunk or an entry."""
        self._variable(key).clear()

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

    def _variable(self, key: str) -> "ValueState | _Entry":
        name = self._name(key)
        return self._state.entry(name) if key.startswith("key/") else self._state.chunk(name)

    def _name(self, key: str) -> str:
        return f"{self._namespace}/{key}"
