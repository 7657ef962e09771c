"""What is committed of a space: all of it in memory, or read key by key from the store."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, final

from sparkstorm.errors import EmitError
from sparkstorm.packets.hashing import hash_value
from sparkstorm.state.kept import DELETED, load_chunk
from sparkstorm.texts.showing import shown

__all__ = ["Base", "EntryStore", "MemoryEntries", "StoredEntries", "entry_id"]


class Base(Protocol):
    """What is committed of a space."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key as it is kept, or the default."""
        ...

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All keys with their values as they are kept."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int: ...

    def take(self, changes: Mapping[Any, Any]) -> None:
        """Take over what a batch has changed and committed."""
        ...

    def clear(self) -> None:
        """Forget everything: it is going to be read anew."""
        ...


@final
class MemoryEntries(dict[Any, Any]):
    """All keys and values in memory; a dictionary, whose ``get`` costs no call of ours."""

    __slots__ = ()

    def take(self, changes: Mapping[Any, Any]) -> None:
        """Take over what a batch has changed and committed."""
        self.update(changes)
        for key in [key for key, value in changes.items() if value is DELETED]:
            del self[key]


class EntryStore(Protocol):
    """Where single entries are kept: Spark's state store, or a dictionary in tests."""

    def get(self, key: str) -> bytes | None:
        """Return an entry, or None."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Set an entry; it commits with the batch."""
        ...

    def delete(self, key: str) -> None:
        """Remove an entry."""
        ...

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """All entries whose keys start so, in the order of the keys."""
        ...


@final
class StoredEntries:
    """The base of a space that may be larger than memory (a :class:`Base`).

    An entry of the store is named by the hash of its key, which is the same in every process; it
    holds all keys of that hash with their values. What a batch reads is kept until its end.

    Args:
        space: the space's name.
    """

    def __init__(self, space: str) -> None:
        self._prefix = f"key/{space}/"
        self._store: EntryStore | None = None
        self._count = 0
        self._read: dict[str, dict[Any, Any]] = {}
        self._names: dict[Any, str] = {}

    @staticmethod
    def space_of(name: str) -> str:
        """The space that an entry of the store belongs to."""
        return name.removeprefix("key/").rpartition("/")[0]

    def open(self, store: EntryStore, count: int) -> None:
        """Start a batch: read from this store, which holds so many keys of the space."""
        self._store, self._count = store, count
        self.clear()

    # --- as a mapping --------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key as it is kept, or the default."""
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

    def write(self, changes: Mapping[Any, Any], store: EntryStore) -> None:
        """Write a batch's changes; they count from its commit on."""
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

    def take(self, changes: Mapping[Any, Any]) -> None:
        """They are in the store already."""
        self.clear()

    def clear(self) -> None:
        """Forget what was read."""
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
            except EmitError:
                raise TypeError(
                    f"{shown(key)} cannot be a key of a state in RocksDB: use text, bytes, "
                    f"numbers, booleans, None, dates, decimals or tuples of these"
                ) from None
        return name


def entry_id(key: Any) -> str:
    """How the name of the entry ends that holds a key."""
    return f"{hash_value(key):016x}"
