"""Bases: the committed content of a space, in memory or read key by key from the store."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, final

from sparkstorm.errors import EmitError
from sparkstorm.packets.hashing import hash_value
from sparkstorm.state.kept import DELETED, load_chunk
from sparkstorm.state.stores import ChunkStore
from sparkstorm.texts.showing import shown

__all__ = ["Base", "MemoryBase", "StoredBase", "entry_id"]


class Base(Protocol):
    """The committed content of a space."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the stored form of a key's value, or the default."""
        ...

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return all keys with the stored forms of their values."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int: ...

    def apply(self, changes: Mapping[Any, Any]) -> None:
        """Apply a batch's committed changes."""
        ...

    def clear(self) -> None:
        """Drop the content before it is read anew."""
        ...


@final
class MemoryBase(dict[Any, Any]):
    """All keys and values in memory; a dictionary, whose ``get`` needs no call of ours."""

    __slots__ = ()

    def apply(self, changes: Mapping[Any, Any]) -> None:
        """Apply a batch's committed changes."""
        self.update(changes)
        # update is C code and deletions are rare, so a second pass costs less than a test per key.
        for key in [key for key, value in changes.items() if value is DELETED]:
            del self[key]


@final
class StoredBase:
    """The base of a space that may be larger than memory (a :class:`Base`).

    An entry of the store is named by its keys' hash, which is the same in every process; the entry
    holds all keys of the hash with their values. The base keeps entries read in a batch until the
    batch's end.

    Args:
        space: the space's name.
    """

    def __init__(self, space: str) -> None:
        self._prefix = f"key/{space}/"
        self._store: ChunkStore | None = None
        self._count = 0
        self._read: dict[str, dict[Any, Any]] = {}
        self._names: dict[Any, str] = {}

    @staticmethod
    def space_of(name: str) -> str:
        """Return the space of an entry of the store."""
        return name.removeprefix("key/").rpartition("/")[0]

    def open(self, store: ChunkStore, count: int) -> None:
        """Start a batch on this store, which holds ``count`` keys of the space."""
        self._store, self._count = store, count
        self.clear()

    # --- as a mapping --------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the stored form of a key's value, or the default."""
        return self._entry(key).get(key, default)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Read all keys and values."""
        for _, data in () if self._store is None else self._store.entries(self._prefix):
            yield from load_chunk(data).items()

    def __contains__(self, key: Any) -> bool:
        return key in self._entry(key)

    def __len__(self) -> int:
        return self._count

    # --- for the engine ------------------------------------------------------------------------

    def write(self, changes: Mapping[Any, Any], store: ChunkStore) -> None:
        """Write a batch's changes; the store commits them with the batch."""
        touched: dict[str, dict[Any, Any]] = {}
        for key, value in changes.items():
            entry = touched.setdefault(self._name(key), dict(self._entry(key)))
            entry[key] = value
            if value is DELETED:
                del entry[key]
        for name, entry in touched.items():
            if entry:
                store.put(name, pickle.dumps(entry, pickle.HIGHEST_PROTOCOL))
            else:
                store.delete(name)

    def apply(self, changes: Mapping[Any, Any]) -> None:
        """Drop entries read before the changes, which the store has already."""
        self.clear()

    def clear(self) -> None:
        """Drop all entries read."""
        self._read, self._names = {}, {}

    def _entry(self, key: Any) -> dict[Any, Any]:
        name = self._name(key)
        entry = self._read.get(name)
        if entry is None:
            data = None if self._store is None else self._store.get(name)
            entry = self._read[name] = {} if data is None else load_chunk(data)
        return entry

    def _name(self, key: Any) -> str:
        name = self._names.get(key)
        if name is None:
            try:
                name = self._names[key] = f"{self._prefix}{entry_id(key)}"
            # The hash is that of fields grouping, whose errors speak of emits.
            except EmitError:
                raise TypeError(
                    f"{shown(key)} cannot be a key of a state in RocksDB: use text, bytes, "
                    f"numbers, booleans, None, dates, decimals or tuples of these"
                ) from None
        return name


def entry_id(key: Any) -> str:
    """Return the end of the name of the entry that holds a key."""
    return f"{hash_value(key):016x}"
