"""The state of tasks in Spark's state store, as chunks and entries."""

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

    Each chunk is the value of a grouping key of its own, made of the chunk's name. A map of chunks
    would be more usual in Spark, but declaring a map costs a task 20 ms more in each batch: Spark
    generates and compiles code to encode the map's keys. Entries are a map all the same, because
    sparkstorm iterates over them.

    Args:
        handle: Spark's handle, with which a processor declares its variables.
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
        """Start a batch with the partition's grouping key, which Spark has selected."""
        self._key = self._selected = key

    def chunk(self, name: str) -> ValueState:
        """Return the variable of a chunk; valid until the next call."""
        self._select((name,))
        return self._chunks

    def entry(self, name: str) -> "_Entry":
        """Return the variable of an entry; valid until the next call."""
        return _Entry(self.entries(), name)

    def entries(self) -> MapState:
        """Return the variable of all entries; valid until the next call."""
        assert self._entries is not None  # noqa: S101 - asked only if has_entries
        self._select(self._key)
        return self._entries

    def _select(self, key: tuple[str]) -> None:
        if key != self._selected:
            self._client.set_implicit_key(key)
            self._selected = key


@final
class _Entry:
    """One key of a map, with the methods of a chunk's variable."""

    def __init__(self, entries: MapState, name: str) -> None:
        self._entries = entries
        self._key = (name,)

    def get(self) -> tuple[Any, ...] | None:
        """Return the value, or None."""
        found: tuple[Any, ...] | None = self._entries.getValue(self._key)
        return found

    def update(self, value: tuple[bytes]) -> None:
        """Set the value."""
        self._entries.updateValue(self._key, value)

    def clear(self) -> None:
        """Remove the key."""
        self._entries.removeKey(self._key)


@final
class TaskStore:
    """A task's part of a partition's state, as an :class:`EntryStore`; Spark commits each batch.

    Args:
        state: the partition's state.
        namespace: the task's name, which begins the names of its chunks and entries.
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
        """Yield the entries whose keys start with a prefix, in the order of the keys' names.

        Spark cannot look for a prefix: all entries of the partition are read.
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
