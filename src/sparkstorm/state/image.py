"""The image of a task's state: all of the state in a worker process, kept between batches.

The change log (:mod:`log`) in Spark's state store has the truth. An image is of use only if its
last batch was committed, and the log's head knows. An image whose (version, token) the head names
catches up by reading the chunks since; usually there are none, because no other process ran the
task. An image ahead of the head rolls back its last batch if that suffices. Any other image is
read anew from the snapshot. Changes of a batch that broke off before its write are rolled back in
any case.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

from sparkstorm.packets.inbox import Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.state.expiring import Expiring
from sparkstorm.state.held import HeldBatch, HeldSpace
from sparkstorm.state.log import ChunkLog
from sparkstorm.state.names import check_name, check_ttl
from sparkstorm.state.spaces.base import Base, StoredBase
from sparkstorm.state.spaces.key_values import KeyValues
from sparkstorm.state.spaces.space import Space
from sparkstorm.state.spaces.undo import Call
from sparkstorm.state.stores import ChunkStore, MemoryStore

__all__ = ["StateImage", "state_of"]

_ENTRY_BYTES, _RECORD_BYTES = 128, 1024
"""The approximate memory of a key with its value, and of a held tuple, beyond their pickles."""

_NAMED, _TIMES, _DUE = "named/", "times/", "due/"
"""The prefixes of the spaces that make up a named state."""

_ATTRIBUTES = "attributes"


@final
class StateImage(KeyValues):
    """The state of a task as the task's bolt sees it (a :class:`sparkstorm.State`).

    The image itself is the space without a name, and has the other spaces.

    Args:
        in_memory: whether keys and values stay in memory; otherwise each is read from the store.
            Held tuples and attributes are always in memory.
    """

    __slots__ = (
        "_held",
        "_log",
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
        self._log = ChunkLog()
        self._stored: dict[str, StoredBase] | None = None if in_memory else {}
        self._store: ChunkStore = MemoryStore()
        super().__init__("", Call(), self._base_of(""))
        self._version, self._token = -1, ""
        self._previous = (-1, "")
        self._written = False
        self._spaces: dict[str, Space] = {"": self}
        # Every named state is looked after here, so that its notes go if it loses its time to live.
        self._named: dict[str, Expiring] = {}
        self._held = HeldBatch(Inbox.empty())

    # --- for the bolt --------------------------------------------------------------------------

    def named(self, name: str, *, ttl_secs: float | None = None) -> KeyValues | Expiring:
        """Return the key-value state of this name; a key lives ``ttl_secs`` after its last put."""
        check_name(name)
        check_ttl(ttl_secs)
        known = self._named.get(name)
        # The same object at each call: two objects would each list the keys put.
        if known is None:
            values, times, due = (self._values(f"{kind}{name}") for kind in (_NAMED, _TIMES, _DUE))
            known = self._named[name] = Expiring(values, times, due, ttl_secs)
            known.begin(self._held.inbox.batch.time)
        elif known.ttl_secs != ttl_secs:
            raise ValueError(
                f"the state {name!r} has ttl_secs={known.ttl_secs} already: ask for it with the "
                f"same ttl_secs each time"
            )
        return known if ttl_secs is not None else self._values(f"{_NAMED}{name}")

    def tuples(self, name: str) -> HeldSpace:
        """Return the tuples held under this name."""
        check_name(name)
        return self._tuples(f"{HeldSpace.PREFIX}{name}")

    # --- for the engine, in a batch ------------------------------------------------------------

    @property
    def attributes(self) -> KeyValues:
        """The space for the attributes of a bolt."""
        space = self._spaces.get(_ATTRIBUTES)
        if not isinstance(space, KeyValues):
            space = self._spaces[_ATTRIBUTES] = KeyValues(_ATTRIBUTES, self._call)
        return space

    @property
    def call(self) -> Call:
        """The changes of the running call of user code, in all spaces."""
        return self._call

    def begin(self, inbox: Inbox, ended: Iterable[int]) -> None:
        """Start a batch: held tuples become available, without tuples of ended roots."""
        self._held = HeldBatch(inbox)
        ended = list(ended)
        for space in self._spaces.values():
            if isinstance(space, HeldSpace):
                space.begin(self._held, ended)
        for named in self._named.values():
            named.begin(inbox.batch.time)

    def finish(self) -> None:
        """Discard the held tuples acked or failed in this batch; list the keys put."""
        self._held.discard_ended()
        for named in self._named.values():
            named.finish()

    def holds(self, index: int) -> bool:
        """Whether a tuple of the batch's inbox is held."""
        return self._held.place_of(index) is not None

    # --- for the engine, between batches -------------------------------------------------------

    def load(self, store: ChunkStore) -> None:
        """Bring the image in line with the committed state; called before a batch."""
        log = self._log = ChunkLog.load(store)
        self._store = store
        for name, base in (self._stored or {}).items():
            base.open(store, log.counts.get(name, 0))
        # Changes without a write are those of a run that broke off.
        if not self._written:
            self._roll_back()
        chunks = log.later_than(self._version, self._token)
        if chunks is not None:
            self._commit()
        elif (chunks := log.later_than(*self._previous)) is not None:
            self._roll_back()  # another run of the last batch was committed, or none
        if chunks is None:
            self._read_anew(store, log)
        else:
            for version in chunks:
                self._apply(log.chunk(store, version))
        self._version, self._token = log.version, log.token
        self._previous, self._written = (log.version, log.token), False

    def write(self, store: ChunkStore, version: int, token: str) -> None:
        """Write the batch's changes under its version; called after a batch."""
        log = self._log
        self._version, self._token, self._written = version, token, True
        log.version, log.token = version, token
        changes = {name: fresh for name, space in self._spaces.items() if (fresh := space.fresh())}
        for name, base in (self._stored or {}).items():
            base.write(changes.pop(name, {}), store)
            self._close_base(name, base, store)
        if log.write(store, changes):
            if log.needs_snapshot():
                self._write_snapshot(store)
        else:  # without this version's chunk no earlier chunk leads to the state
            self._write_snapshot(store)
            log.drop_chunks(store)
        log.trim(store)
        log.save(store)
        self._free_batch()

    def release(self) -> None:
        """Give the memory back: the next ``load`` reads everything anew."""
        for space in self._spaces.values():
            space.clear()
        self._version, self._token, self._written = -1, "", False
        self._previous = (-1, "")
        self._log = ChunkLog()

    @property
    def size(self) -> int:
        """The approximate memory of the image, in bytes."""
        size = self._log.size
        for name, space in self._spaces.items():
            if isinstance(space, HeldSpace):
                size += _RECORD_BYTES * len(space)
            elif isinstance(space, KeyValues) and name not in (self._stored or ()):
                size += _ENTRY_BYTES * len(space)
        return size

    def _close_base(self, name: str, base: StoredBase, store: ChunkStore) -> None:
        """Keep nothing in memory of a space that is stored key by key."""
        space = self._values(name)
        count = self._log.counts[name] = len(space)
        base.open(store, count)
        space.roll_back()

    def _free_batch(self) -> None:
        """Let the batch's tuples be freed before the task runs here again."""
        self._held = HeldBatch(Inbox.empty())
        for space in self._spaces.values():
            if isinstance(space, HeldSpace):
                space.finish(self._held)

    def _roll_back(self) -> None:
        for space in self._spaces.values():
            space.roll_back()

    def _commit(self) -> None:
        for space in self._spaces.values():
            space.commit()

    def _apply(self, chunk: Mapping[str, dict[Any, Any]]) -> None:
        for name, changes in chunk.items():
            self._space(name).apply(changes)

    def _space(self, name: str) -> Space:
        if name == _ATTRIBUTES:
            return self.attributes
        return self._tuples(name) if name.startswith(HeldSpace.PREFIX) else self._values(name)

    def _values(self, name: str) -> KeyValues:
        space = self._spaces.get(name)
        if not isinstance(space, KeyValues):
            space = self._spaces[name] = KeyValues(name, self._call, self._base_of(name))
        return space

    def _base_of(self, name: str) -> Base | None:
        if self._stored is None:
            return None
        base = self._stored[name] = StoredBase(name)
        base.open(self._store, self._log.counts.get(name, 0))
        return base

    def _tuples(self, name: str) -> HeldSpace:
        space = self._spaces.get(name)
        if not isinstance(space, HeldSpace):
            space = self._spaces[name] = HeldSpace(name, self._call)
            space.begin(self._held, ())
        return space

    def _read_anew(self, store: ChunkStore, log: ChunkLog) -> None:
        for space in self._spaces.values():
            space.clear()
        for chunk in log.committed(store):
            self._apply(chunk)

    def _write_snapshot(self, store: ChunkStore) -> None:
        in_memory = self._spaces.keys() - (self._stored or {}).keys()
        self._log.write_snapshot(store, [self._spaces[name] for name in sorted(in_memory)])


def state_of(plan: Plan, component: str) -> StateImage:
    """Return an empty state for a task of a component, ready for ``load``."""
    return StateImage(in_memory=plan.settings(component).state_backend == "memory")
