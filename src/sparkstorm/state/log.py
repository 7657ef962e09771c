"""The change log of a task's state: one chunk per batch, and a snapshot now and then.

One operation of Spark's state store costs tens of microseconds, so a bolt must not pay an
operation per key. A batch's changes are written as a single chunk under the batch's number. In the
store, per task:

``head``            version, token, and the snapshot and chunks that make up the state
``log/<version>``   the keys changed by one batch, with their values
``snap/<n>/<i>``    the whole state, in pieces, as of version n
``key/<space>/…``   single keys with their values, of states that may be larger than memory

Spark may run a task twice, or throw a batch away. So each run has a *token*, and the head names
the tokens of the runs that made the state.

The log reaches back behind the snapshot, within the same bounds. Spark runs a task in any idle
process, so the images of other processes are some batches behind when a snapshot is written. They
catch up by the chunks; only a process without an image reads the snapshot.
"""

import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, final

from sparkstorm.state.kept import load_chunk
from sparkstorm.state.spaces.space import Space
from sparkstorm.state.stores import ChunkStore

__all__ = ["ChunkLog"]

_CHUNK_BYTES = 64 * 1024 * 1024
"""The largest chunk. The JVM has no arrays beyond two gigabytes, and holds several copies."""

_SNAPSHOT_ITEMS = 50_000
_SNAPSHOT_MIN = 10_000
_MAX_LOG = 100


@final
@dataclass(slots=True)
class ChunkLog:
    """The head of a task's change log: the snapshot and the chunks that make up the state.

    Attributes:
        version: the last batch whose changes are in the store.
        token: the run that wrote the last batch.
        snapshot: the version of the snapshot, -1 without one.
        pieces: the number of the snapshot's pieces.
        snapshot_size: the number of the snapshot's entries.
        size: the bytes of the snapshot and of the chunks since.
        log: version, token and number of entries of each chunk; the snapshot includes the first
            ones.
        counts: the number of keys of each space that is stored key by key.
    """

    version: int = -1
    token: str = ""
    snapshot: int = -1
    pieces: int = 0
    snapshot_size: int = 0
    size: int = 0
    log: list[tuple[int, str, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, store: ChunkStore) -> "ChunkLog":
        """Read the head from the store; an empty log if there is none."""
        data = store.get("head")
        if data is None:
            return cls()
        values = json.loads(data)
        values["log"] = [tuple(entry) for entry in values["log"]]
        return cls(**values)

    def save(self, store: ChunkStore) -> None:
        """Write the head."""
        values = {name: getattr(self, name) for name in self.__slots__}
        store.put("head", json.dumps(values).encode())

    def since_snapshot(self) -> list[tuple[int, str, int]]:
        """Return the part of the log behind the snapshot."""
        return [entry for entry in self.log if entry[0] > self.snapshot]

    def committed(self, store: ChunkStore) -> Iterator[dict[str, dict[Any, Any]]]:
        """Read the snapshot, and the chunks written since."""
        return map(load_chunk, self.data(store))

    def chunk(self, store: ChunkStore, version: int) -> dict[str, dict[Any, Any]]:
        """Read a batch's chunk: changes by space."""
        return load_chunk(_chunk(store, f"log/{version}"))

    def write(self, store: ChunkStore, changes: dict[str, dict[Any, Any]]) -> bool:
        """Write a batch's changes; False if only a snapshot can take them."""
        size = sum(map(len, changes.values()))
        # A batch that changes most of the state: a chunk would cost as much as the snapshot behind
        # it.
        if size > max(self.snapshot_size, _SNAPSHOT_MIN):
            return False
        data = pickle.dumps(changes, pickle.HIGHEST_PROTOCOL)
        # A snapshot is written in pieces, a chunk is not: it would have to be joined before it
        # applies.
        if len(data) > _CHUNK_BYTES:
            return False
        self._append(store, data, size)
        return True

    def write_snapshot(self, store: ChunkStore, spaces: Iterable[Space]) -> None:
        """Write the whole content of the spaces, in place of the snapshot before."""
        for number in range(self.pieces):
            store.delete(f"snap/{self.snapshot}/{number}")
        self.snapshot, self.pieces, self.snapshot_size, self.size = self.version, 0, 0, 0
        for space in spaces:
            for entries, data in _pieces(space):
                store.put(f"snap/{self.snapshot}/{self.pieces}", data)
                self.pieces += 1
                self.snapshot_size += entries
                self.size += len(data)

    def data(self, store: ChunkStore) -> Iterator[bytes]:
        """Yield the chunks of the committed state, in the order in which they apply."""
        for piece in range(self.pieces):
            yield _chunk(store, f"snap/{self.snapshot}/{piece}")
        for version, _, _ in self.since_snapshot():
            yield _chunk(store, f"log/{version}")

    def _append(self, store: ChunkStore, data: bytes, entries: int) -> None:
        """Write a chunk of this version."""
        store.put(f"log/{self.version}", data)
        self.log.append((self.version, self.token, entries))
        self.size += len(data)

    def drop_chunks(self, store: ChunkStore) -> None:
        """Delete all chunks."""
        for version, _, _ in self.log:
            store.delete(f"log/{version}")
        self.log.clear()

    def trim(self, store: ChunkStore) -> None:
        """Delete the oldest chunks that the snapshot includes, down to the bounds of the log."""
        entries = sum(entry[2] for entry in self.log)
        # Chunks later than the snapshot are part of the state; only the others may go.
        while self._is_over(len(self.log), entries) and self.log[0][0] <= self.snapshot:
            version, _, dropped = self.log.pop(0)
            store.delete(f"log/{version}")
            entries -= dropped

    def needs_snapshot(self) -> bool:
        """Whether reading the log has become dearer than reading the state."""
        since = self.since_snapshot()
        return self._is_over(len(since), sum(entry[2] for entry in since))

    def _is_over(self, chunks: int, entries: int) -> bool:
        return chunks > _MAX_LOG or entries > max(self.snapshot_size, _SNAPSHOT_MIN)

    def later_than(self, version: int, token: str) -> "list[int] | None":
        """Return the versions of the chunks after a version; None if the log does not name it."""
        if (version, token) == (self.version, self.token):
            return []
        for index, (logged, its_token, _) in enumerate(self.log):
            if (logged, its_token) == (version, token):
                return [entry[0] for entry in self.log[index + 1 :]]
        return None


def _pieces(space: Space) -> Iterator[tuple[int, bytes]]:
    """Cut the content of a space into chunks; yield each chunk's count of entries and its bytes."""
    entries = space.entries()
    while piece := list(islice(entries, _SNAPSHOT_ITEMS)):
        yield from _cut(space.name, piece)


def _cut(name: str, entries: list[tuple[Any, Any]]) -> Iterator[tuple[int, bytes]]:
    data = pickle.dumps({name: dict(entries)}, pickle.HIGHEST_PROTOCOL)
    # A single entry cannot be cut: a larger value is the user's own, and the JVM may refuse it.
    if len(data) <= _CHUNK_BYTES or len(entries) == 1:
        yield len(entries), data
        return
    middle = len(entries) // 2
    yield from _cut(name, entries[:middle])
    yield from _cut(name, entries[middle:])


def _chunk(store: ChunkStore, key: str) -> bytes:
    data = store.get(key)
    if data is None:
        raise KeyError(f"the state store has no chunk {key!r}: the checkpoint is damaged")
    return data
