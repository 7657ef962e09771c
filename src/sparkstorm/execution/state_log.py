"""The state of a task: an image in the worker, a change log in the store.

One operation of Spark's state store costs tens of microseconds, so a bolt must not pay it per
key. A batch's changes are written as one chunk under the batch's number; the worker process keeps
an image of the whole state. In the store, per task:

``head``            version, token, which snapshot and which chunks of the log make it up
``log/<version>``   the keys changed by one batch, with their values
``snap/<n>/<i>``    the whole state, in pieces, as of version n

An image is of use only if its last batch was committed. Spark may run a task twice, or throw a
batch away, so each attempt has a *token*, and the head names the tokens that made it. An image
whose (version, token) the head knows catches up by reading the chunks since (none, if nothing
else ran the task); one that is ahead of the head takes its last batch back if that suffices;
otherwise it is read again from the snapshot.

Values that can change in place are kept pickled in the image, so that a value changed without
``put`` changes nowhere.
"""

import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from sparkstorm.execution.held import Bag, Holding
from sparkstorm.execution.inbox import Inbox
from sparkstorm.execution.spaces import MISSING, Space, SpaceKey

__all__ = ["ChunkStore", "MemoryStore", "StateImage"]

_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
_SNAPSHOT_ITEMS = 50_000
_SNAPSHOT_MIN = 10_000
_MAX_LOG = 100
_BAGS = "tuples/"
"""The names of spaces that hold tuples start so."""


class ChunkStore(Protocol):
    """Where chunks are kept: Spark's state store, or a dictionary in tests."""

    def get(self, key: str) -> bytes | None:
        """Return a chunk, or None."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Set a chunk; it commits with the batch."""
        ...

    def delete(self, key: str) -> None:
        """Remove a chunk."""
        ...


@final
class MemoryStore:
    """A store in memory that commits when told to, for the in-process runner."""

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

    def commit(self) -> None:
        """Keep what was written."""
        self._committed = dict(self._chunks)

    def copy(self) -> "MemoryStore":
        """Another store with the same chunks."""
        other = MemoryStore()
        other._committed, other._chunks = dict(self._committed), dict(self._chunks)
        return other

    def rollback(self) -> None:
        """Forget what was written since the last commit."""
        self._chunks = dict(self._committed)


@dataclass(frozen=True, slots=True)
class _Pickled:
    data: bytes


@dataclass(frozen=True, slots=True)
class _Deleted:
    """Stands for a deleted key in a chunk."""


@dataclass(slots=True)
class _Head:
    """What the store's state is made up of."""

    version: int = -1
    token: str = ""
    snapshot: int = -1
    pieces: int = 0
    snapshot_size: int = 0
    log: list[tuple[int, str, int]] = field(default_factory=list)

    @classmethod
    def load(cls, store: ChunkStore) -> "_Head":
        data = store.get("head")
        if data is None:
            return cls()
        values = json.loads(data)
        values["log"] = [tuple(entry) for entry in values["log"]]
        return cls(**values)

    def save(self, store: ChunkStore) -> None:
        values = {name: getattr(self, name) for name in self.__slots__}
        store.put("head", json.dumps(values).encode())

    def later_than(self, version: int, token: str) -> "list[int] | None":
        """The chunks written since a version; None if the head does not know that version."""
        if (version, token) == (self.version, self.token):
            return []
        for index, (logged, its_token, _) in enumerate(self.log):
            if (logged, its_token) == (version, token):
                return [entry[0] for entry in self.log[index + 1 :]]
        return None


@final
class StateImage:
    """The state of one task as its bolt sees it (a :class:`sparkstorm.State`).

    ``call`` lists the (key, old value) of each put and delete of the running ``execute``, for
    :meth:`undo_call`; whoever calls ``execute`` clears it. A list over the whole batch would keep
    every value of it in memory, which costs more than all the puts. Keys of spaces stand there as
    :class:`SpaceKey`.
    """

    __slots__ = (
        "_data",
        "_head",
        "_holding",
        "_olds",
        "_previous",
        "_spaces",
        "_token",
        "_version",
        "call",
    )

    def __init__(self) -> None:
        self._data: dict[Any, Any] = {}
        self._version, self._token = -1, ""
        self._previous = (-1, "")
        self._head = _Head()
        self.call: list[tuple[Any, Any]] = []
        self._olds: dict[Any, Any] = {}
        """What each key changed in this batch had before it."""
        self._spaces: dict[str, Space] = {}
        self._holding = Holding(Inbox.empty())

    def tuples(self, name: str) -> Bag:
        """Return the tuples held under this name."""
        return self._bag(f"{_BAGS}{name}")

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        value = self._data.get(key, default)
        return pickle.loads(value.data) if value.__class__ is _Pickled else value  # noqa: S301

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        if value.__class__ not in _ATOMS:
            value = _Pickled(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        data = self._data
        old = data.get(key, MISSING)
        data[key] = value
        self.call.append((key, old))
        if key not in self._olds:
            self._olds[key] = old

    def delete(self, key: Any) -> None:
        """Remove a key."""
        old = self._data.pop(key, MISSING)
        if old is not MISSING:
            self.call.append((key, old))
            self._olds.setdefault(key, old)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over all keys and values."""
        return ((key, self.get(key)) for key in list(self._data))

    def __contains__(self, key: Any) -> bool:
        return key in self._data

    def __len__(self) -> int:
        return len(self._data)

    def __reduce__(self) -> Any:
        raise TypeError("the state cannot be pickled; it is kept by the engine")

    def undo_call(self) -> None:
        """Take back what the running ``execute`` put and deleted."""
        while self.call:
            self._restore(*self.call.pop())

    def begin(self, inbox: Inbox, ended: Iterable[int]) -> None:
        """Bring what is held into a batch, less what belongs to roots that have ended."""
        self._holding = Holding(inbox)
        ended = list(ended)
        for bag in self._bags():
            bag.begin(self._holding, ended)

    def let_go(self) -> None:
        """Drop what was held and is acked or failed now."""
        self._holding.let_go()

    def holds(self, index: int) -> bool:
        """Whether a tuple of the batch's inbox is held."""
        return self._holding.place_of(index) is not None

    def load(self, store: ChunkStore) -> None:
        """Bring the image in line with what is committed; called before a batch."""
        head = _Head.load(store)
        chunks = head.later_than(self._version, self._token)
        if chunks is None and (before := head.later_than(*self._previous)) is not None:
            for key, old in self._olds.items():
                self._restore(key, old)
            chunks = before
        self.call.clear()
        self._olds.clear()
        if chunks is None:
            self._read_snapshot(store, head)
            chunks = [entry[0] for entry in head.log]
        for version in chunks:
            self._apply(_unpickle(store, f"log/{version}"))
        self._version, self._token, self._head = head.version, head.token, head

    def write(self, store: ChunkStore, version: int, token: str) -> None:
        """Write the batch's changes under its version; called after a batch."""
        head = self._head
        self._previous = (head.version, head.token)
        self._version, self._token = version, token
        head.version, head.token = version, token
        changed = len(self._olds)
        logged = sum(size for _, _, size in head.log) + changed
        if len(head.log) >= _MAX_LOG or logged > max(head.snapshot_size, _SNAPSHOT_MIN):
            self._write_snapshot(store, head, version)
        else:
            chunk = {key: self._logged(key) for key in self._olds}
            store.put(f"log/{version}", pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL))
            head.log.append((version, token, changed))
        head.save(store)

    def _logged(self, key: Any) -> Any:
        if key.__class__ is SpaceKey:
            return self._space(key.space).find(key.key, _Deleted())
        return self._data.get(key, _Deleted())

    def _note(self, key: SpaceKey, old: Any) -> None:
        self.call.append((key, old))
        self._olds.setdefault(key, old)

    def _bags(self) -> list[Bag]:
        return [space for space in self._spaces.values() if isinstance(space, Bag)]

    def _bag(self, name: str) -> Bag:
        space = self._spaces.get(name)
        if not isinstance(space, Bag):
            space = self._spaces[name] = Bag(name, self._note)
            space.begin(self._holding, ())
        return space

    def _space(self, name: str) -> Space:
        space = self._spaces.get(name)
        return self._bag(name) if space is None else space

    def _restore(self, key: Any, old: Any) -> None:
        if key.__class__ is SpaceKey:
            self._space(key.space).restore(key.key, old)
        elif old is MISSING:
            self._data.pop(key, None)
        else:
            self._data[key] = old

    def _apply(self, chunk: dict[Any, Any]) -> None:
        for key in [key for key in chunk if key.__class__ is SpaceKey]:
            value = chunk.pop(key)
            gone = value.__class__ is _Deleted
            self._space(key.space).restore(key.key, MISSING if gone else value)
        self._data.update(chunk)
        for key in [key for key, value in chunk.items() if value.__class__ is _Deleted]:
            del self._data[key]

    def _read_snapshot(self, store: ChunkStore, head: _Head) -> None:
        self._data.clear()
        for space in self._spaces.values():
            space.forget()
        for piece in range(head.pieces):
            self._apply(_unpickle(store, f"snap/{head.snapshot}/{piece}"))

    def _write_snapshot(self, store: ChunkStore, head: _Head, version: int) -> None:
        for old_version, _, _ in head.log:
            store.delete(f"log/{old_version}")
        for piece in range(head.pieces):
            store.delete(f"snap/{head.snapshot}/{piece}")
        items = list(self._data.items())
        for space in self._spaces.values():
            items += space.entries()
        pieces = range(0, len(items), _SNAPSHOT_ITEMS)
        for number, start in enumerate(pieces):
            chunk = dict(items[start : start + _SNAPSHOT_ITEMS])
            data = pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL)
            store.put(f"snap/{version}/{number}", data)
        head.snapshot, head.pieces = version, len(pieces)
        head.snapshot_size, head.log = len(items), []


def _unpickle(store: ChunkStore, key: str) -> dict[Any, Any]:
    data = store.get(key)
    if data is None:
        raise KeyError(f"the state store has no chunk {key!r}: the checkpoint is damaged")
    chunk: dict[Any, Any] = pickle.loads(data)  # noqa: S301 - written by our own worker
    return chunk
