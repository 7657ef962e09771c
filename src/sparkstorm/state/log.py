"""The state of a task: an image in the worker, a change log in the store.

One operation of Spark's state store costs tens of microseconds, so a bolt must not pay it per
key. A batch's changes are written as one chunk under the batch's number; the worker process keeps
an image of the whole state. In the store, per task:

``head``            version, token, which snapshot and which chunks of the log make it up
``log/<version>``   the keys changed by one batch, with their values
``snap/<n>/<i>``    the whole state, in pieces, as of version n
``key/<space>/…``   single keys with their values, of states that may be larger than memory

An image is of use only if its last batch was committed. Spark may run a task twice, or throw a
batch away, so each attempt has a *token*, and the head names the tokens that made it. An image
whose (version, token) the head knows catches up by reading the chunks since (none, if nothing
else ran the task); one that is ahead of the head drops its last batch if that suffices; otherwise
it is read again from the snapshot. What a batch left that broke off before it was written is
dropped in any case.

The log reaches back behind the snapshot, within the same bounds. Spark runs a task in whichever
process is idle, so images in other processes are some batches behind when a snapshot is written:
they catch up by the chunks, and only a process that has no image reads the snapshot.
"""

import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias, final

from sparkstorm.packets.inbox import Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.state.committed import Base, EntryStore, StoredEntries
from sparkstorm.state.expiring import Expiring
from sparkstorm.state.held import Bag, Holding
from sparkstorm.state.kept import load_chunk
from sparkstorm.state.key_values import KeyValues
from sparkstorm.state.names import check_name, check_ttl
from sparkstorm.state.spaces import Space
from sparkstorm.state.undo import Call

__all__ = ["ChunkStore", "MemoryStore", "StateImage", "committed_chunks", "state_of"]

_CHUNK_BYTES = 64 * 1024 * 1024
"""Larger chunks are cut: the JVM has no arrays beyond two gigabytes, and holds several copies."""

_SNAPSHOT_ITEMS = 50_000
_SNAPSHOT_MIN = 10_000
_MAX_LOG = 100
_ENTRY_BYTES, _RECORD_BYTES = 128, 1024
"""What a key with its value, and a held tuple, take in memory beyond their pickles, about."""

_NAMED, _TIMES, _DUE = "named/", "times/", "due/"
"""How the names of spaces start that make up a named state."""

_ATTRIBUTES = "attributes"


ChunkStore: TypeAlias = EntryStore
"""Where chunks are kept."""


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

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """All chunks whose keys start so, in the order of the keys."""
        return ((key, self._chunks[key]) for key in sorted(self._chunks) if key.startswith(prefix))

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


@dataclass(slots=True)
class _Head:
    """What the store's state is made up of."""

    version: int = -1
    token: str = ""
    snapshot: int = -1
    pieces: int = 0
    snapshot_size: int = 0
    size: int = 0
    """The bytes of the snapshot and of the chunks that were written since."""

    log: list[tuple[int, str, int]] = field(default_factory=list)
    """Version, token and number of entries of each chunk; the snapshot has the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    """How many keys the spaces have that are stored key by key."""

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

    def since_snapshot(self) -> list[tuple[int, str, int]]:
        """The part of the log that the snapshot does not have."""
        return [entry for entry in self.log if entry[0] > self.snapshot]

    def append(self, store: ChunkStore, data: bytes, entries: int) -> None:
        """Write a chunk of this version, with so many entries."""
        store.put(f"log/{self.version}", data)
        self.log.append((self.version, self.token, entries))
        self.size += len(data)

    def drop_log(self, store: ChunkStore) -> None:
        """Delete all chunks."""
        for version, _, _ in self.log:
            store.delete(f"log/{version}")
        self.log.clear()

    def trim(self, store: ChunkStore) -> None:
        """Delete the oldest chunks that the snapshot has, down to the bounds of the log."""
        entries = sum(entry[2] for entry in self.log)
        while self._is_over(len(self.log), entries) and self.log[0][0] <= self.snapshot:
            version, _, dropped = self.log.pop(0)
            store.delete(f"log/{version}")
            entries -= dropped

    def needs_snapshot(self) -> bool:
        """Whether reading the log has come to cost more than reading the state."""
        since = self.since_snapshot()
        return self._is_over(len(since), sum(entry[2] for entry in since))

    def _is_over(self, chunks: int, entries: int) -> bool:
        return chunks > _MAX_LOG or entries > max(self.snapshot_size, _SNAPSHOT_MIN)

    def later_than(self, version: int, token: str) -> "list[int] | None":
        """The chunks written since a version; None if the head does not know that version."""
        if (version, token) == (self.version, self.token):
            return []
        for index, (logged, its_token, _) in enumerate(self.log):
            if (logged, its_token) == (version, token):
                return [entry[0] for entry in self.log[index + 1 :]]
        return None


@final
class StateImage(KeyValues):
    """The state of one task as its bolt sees it (a :class:`sparkstorm.State`).

    It is itself the space without a name, and has the others.

    Args:
        in_memory: whether keys and values are kept in memory; else the store is asked for each.
            Held tuples and attributes are always in memory.
    """

    __slots__ = (
        "_head",
        "_holding",
        "_named",
        "_previous",
        "_spaces",
        "_store",
        "_stored",
        "_token",
        "_version",
        "_written",
    )

    def __init__(self, *, in_memory: bool = True) -> None:
        self._head = _Head()
        self._stored: dict[str, StoredEntries] | None = None if in_memory else {}
        self._store: EntryStore = MemoryStore()
        super().__init__("", Call(), self._base_of(""))
        self._version, self._token = -1, ""
        self._previous = (-1, "")
        self._written = False
        self._spaces: dict[str, Space] = {"": self}
        self._named: dict[str, Expiring] = {}
        self._holding = Holding(Inbox.empty())

    # --- for the bolt --------------------------------------------------------------------------

    def named(self, name: str, *, ttl_secs: float | None = None) -> KeyValues | Expiring:
        """Return the key-value state of this name; its keys go so long after they were put."""
        check_name(name)
        check_ttl(ttl_secs)
        known = self._named.get(name)
        if known is None:
            values, times, due = (self._values(f"{kind}{name}") for kind in (_NAMED, _TIMES, _DUE))
            known = self._named[name] = Expiring(values, times, due, ttl_secs)
            known.begin(self._holding.inbox.batch.time)
        elif known.ttl_secs != ttl_secs:
            raise ValueError(
                f"the state {name!r} has ttl_secs={known.ttl_secs}: ask for it once, or in the "
                f"same way each time"
            )
        return known if ttl_secs is not None else self._values(f"{_NAMED}{name}")

    def tuples(self, name: str) -> Bag:
        """Return the tuples held under this name."""
        check_name(name)
        return self._bag(f"{Bag.PREFIX}{name}")

    # --- for the engine, in a batch ------------------------------------------------------------

    @property
    def attributes(self) -> KeyValues:
        """Where the attributes of a bolt are kept."""
        space = self._spaces.get(_ATTRIBUTES)
        if not isinstance(space, KeyValues):
            space = self._spaces[_ATTRIBUTES] = KeyValues(_ATTRIBUTES, self._call)
        return space

    @property
    def call(self) -> Call:
        """What the running call of user code has changed, in any space."""
        return self._call

    def begin(self, inbox: Inbox, ended: Iterable[int]) -> None:
        """Bring what is held into a batch, less what belongs to roots that have ended."""
        self._holding = Holding(inbox)
        ended = list(ended)
        for space in self._spaces.values():
            if isinstance(space, Bag):
                space.begin(self._holding, ended)
        for named in self._named.values():
            named.begin(inbox.batch.time)

    def finish(self) -> None:
        """Drop what was held and is acked or failed now; note what was put."""
        self._holding.let_go()
        for named in self._named.values():
            named.finish()

    def holds(self, index: int) -> bool:
        """Whether a tuple of the batch's inbox is held."""
        return self._holding.place_of(index) is not None

    # --- for the engine, between batches -------------------------------------------------------

    def load(self, store: ChunkStore) -> None:
        """Bring the image in line with what is committed; called before a batch."""
        head = self._head = _Head.load(store)
        self._store = store
        for name, entries in (self._stored or {}).items():
            entries.open(store, head.counts.get(name, 0))
        if not self._written:
            self._drop()
        chunks = head.later_than(self._version, self._token)
        if chunks is not None:
            self._settle()
        elif (chunks := head.later_than(*self._previous)) is not None:
            self._drop()
        else:
            self._read_snapshot(store, head)
            chunks = [entry[0] for entry in head.since_snapshot()]
        for version in chunks:
            self._apply(_unpickle(store, f"log/{version}"))
        self._version, self._token = head.version, head.token
        self._previous, self._written = (head.version, head.token), False

    def write(self, store: ChunkStore, version: int, token: str) -> None:
        """Write the batch's changes under its version; called after a batch."""
        head = self._head
        self._version, self._token, self._written = version, token, True
        head.version, head.token = version, token
        chunk = {name: fresh for name, space in self._spaces.items() if (fresh := space.fresh())}
        for name, entries in (self._stored or {}).items():
            entries.write(chunk.pop(name, {}), store)
            self._close_entries(name, entries, store)
        size = sum(map(len, chunk.values()))
        data = b""
        if size <= max(head.snapshot_size, _SNAPSHOT_MIN):
            data = pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL)
        if data and len(data) <= _CHUNK_BYTES:
            head.append(store, data, size)
            if head.needs_snapshot():
                self._write_snapshot(store, head)
        else:  # no chunk, so nothing before it leads to this version
            self._write_snapshot(store, head)
            head.drop_log(store)
        head.trim(store)
        head.save(store)
        self._let_go()

    def release(self) -> None:
        """Give the memory back: the next ``load`` reads everything again."""
        for space in self._spaces.values():
            space.forget()
        self._version, self._token, self._written = -1, "", False
        self._previous = (-1, "")
        self._head = _Head()

    @property
    def size(self) -> int:
        """An estimate of the bytes that it takes in memory."""
        size = self._head.size
        for name, space in self._spaces.items():
            if isinstance(space, Bag):
                size += _RECORD_BYTES * len(space)
            elif isinstance(space, KeyValues) and name not in (self._stored or ()):
                size += _ENTRY_BYTES * len(space)
        return size

    def _close_entries(self, name: str, entries: StoredEntries, store: ChunkStore) -> None:
        """Keep nothing in memory of a space that is stored key by key."""
        space = self._values(name)
        count = self._head.counts[name] = len(space)
        entries.open(store, count)
        space.drop()

    def _let_go(self) -> None:
        """Keep no tuple of the batch from being freed until the task runs here again."""
        self._holding = Holding(Inbox.empty())
        for space in self._spaces.values():
            if isinstance(space, Bag):
                space.leave(self._holding)

    def _drop(self) -> None:
        for space in self._spaces.values():
            space.drop()

    def _settle(self) -> None:
        for space in self._spaces.values():
            space.settle()

    def _apply(self, chunk: dict[str, dict[Any, Any]]) -> None:
        for name, changes in chunk.items():
            self._space(name).apply(changes)

    def _space(self, name: str) -> Space:
        if name == _ATTRIBUTES:
            return self.attributes
        return self._bag(name) if name.startswith(Bag.PREFIX) else self._values(name)

    def _values(self, name: str) -> KeyValues:
        space = self._spaces.get(name)
        if not isinstance(space, KeyValues):
            space = self._spaces[name] = KeyValues(name, self._call, self._base_of(name))
        return space

    def _base_of(self, name: str) -> Base | None:
        if self._stored is None:
            return None
        entries = self._stored[name] = StoredEntries(name)
        entries.open(self._store, self._head.counts.get(name, 0))
        return entries

    def _bag(self, name: str) -> Bag:
        space = self._spaces.get(name)
        if not isinstance(space, Bag):
            space = self._spaces[name] = Bag(name, self._call)
            space.begin(self._holding, ())
        return space

    def _read_snapshot(self, store: ChunkStore, head: _Head) -> None:
        for space in self._spaces.values():
            space.forget()
        for piece in range(head.pieces):
            self._apply(_unpickle(store, f"snap/{head.snapshot}/{piece}"))

    def _write_snapshot(self, store: ChunkStore, head: _Head) -> None:
        for number in range(head.pieces):
            store.delete(f"snap/{head.snapshot}/{number}")
        head.snapshot, head.pieces, head.snapshot_size, head.size = head.version, 0, 0, 0
        in_memory = self._spaces.keys() - (self._stored or {}).keys()
        for name in sorted(in_memory):
            for entries, data in _pieces(name, self._spaces[name]):
                store.put(f"snap/{head.snapshot}/{head.pieces}", data)
                head.pieces += 1
                head.snapshot_size += entries
                head.size += len(data)


def state_of(plan: Plan, component: str) -> StateImage:
    """Return an empty state for a task of a component, to be loaded."""
    return StateImage(in_memory=plan.settings(component).state_backend == "memory")


def committed_chunks(store: EntryStore) -> Iterator[bytes]:
    """The chunks that make up what is committed, in the order in which they apply."""
    head = _Head.load(store)
    for piece in range(head.pieces):
        yield _chunk(store, f"snap/{head.snapshot}/{piece}")
    for version, _, _ in head.since_snapshot():
        yield _chunk(store, f"log/{version}")


def _pieces(name: str, space: Space) -> Iterator[tuple[int, bytes]]:
    """Cut the content of a space into chunks; how many entries each has, and its bytes."""
    entries = space.entries()
    while piece := list(islice(entries, _SNAPSHOT_ITEMS)):
        yield from _cut(name, piece)


def _cut(name: str, entries: list[tuple[Any, Any]]) -> Iterator[tuple[int, bytes]]:
    data = pickle.dumps({name: dict(entries)}, pickle.HIGHEST_PROTOCOL)
    if len(data) <= _CHUNK_BYTES or len(entries) == 1:
        yield len(entries), data
        return
    middle = len(entries) // 2
    yield from _cut(name, entries[:middle])
    yield from _cut(name, entries[middle:])


def _unpickle(store: ChunkStore, key: str) -> dict[str, dict[Any, Any]]:
    return load_chunk(_chunk(store, key))


def _chunk(store: ChunkStore, key: str) -> bytes:
    data = store.get(key)
    if data is None:
        raise KeyError(f"the state store has no chunk {key!r}: the checkpoint is damaged")
    return data
