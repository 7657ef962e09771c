"""A task's committed state for people: read without running code from the checkpoint."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, final

from sparkstorm.state.held import HeldSpace
from sparkstorm.state.kept import MOVED, ChunkUnpickler, Kept
from sparkstorm.state.log import ChunkLog
from sparkstorm.state.spaces.base import MemoryBase, StoredBase
from sparkstorm.state.stores import ChunkStore

__all__ = ["Item", "StandIn", "items_of", "items_of_entry", "items_of_task"]

_SAFE_MODULES = {
    "sparkstorm.state.kept": {"Kept", "DELETED"},
    "sparkstorm.state.held": {"_Record"},
    "builtins": {"set", "frozenset", "bytearray", "complex", "range", "slice"},
    "collections": {"OrderedDict", "deque", "Counter", "defaultdict"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"UUID"},
}
"""The names that a pickle may use. Any other class may be absent here, or may do harm."""


@final
@dataclass(frozen=True, slots=True)
class Item:
    """A key of a space of a task.

    Attributes:
        space: the named state; ``""`` is the bolt's own, and held tuples are below ``tuples/``.
        key: the key; for a held tuple, the key that holds it.
        value: the value; for a held tuple, its fields with their values.
    """

    space: str
    key: Any
    value: Any


class StandIn:
    """Stands for an object of an unknown class: the class's name and the object's parts."""

    name = ""

    def __new__(cls, *arguments: Any, **_: Any) -> Self:
        """Accept any arguments from the pickle."""
        one = super().__new__(cls)
        one.parts = list(arguments)
        return one

    def __init__(self, *_: Any, **__: Any) -> None:
        self.parts: list[Any]

    def __setstate__(self, state: Any) -> None:
        self.parts.append(state)

    def append(self, item: Any) -> None:
        """Add an item of a list."""
        self.parts.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        """Add items of a list."""
        self.parts.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.parts.append((key, value))

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(map(repr, self.parts))}>"


@final
class _Unpickler(ChunkUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Load harmless classes; return a stand-in for all others."""
        if name in _SAFE_MODULES.get(MOVED.get(module, module), ()):
            return super().find_class(module, name)
        return type(name, (StandIn,), {"name": f"{module}.{name}"})


def items_of(store: ChunkStore) -> Iterator[Item]:
    """Read the content of a task's chunks, space by space."""
    spaces: dict[str, MemoryBase] = {}
    for data in ChunkLog.load(store).data(store):
        for space, changes in _loads(data).items():
            spaces.setdefault(space, MemoryBase()).apply(changes)
    for space, entries in sorted(spaces.items()):
        for key, value in entries.items():
            yield from _items(space, key, value)


def items_of_task(store: ChunkStore) -> Iterator[Item]:
    """Read the whole content of a task's store: its chunks and its entries."""
    yield from items_of(store)
    for name, data in store.entries("key/"):
        yield from items_of_entry(name, data)


def items_of_entry(name: str, data: bytes) -> Iterator[Item]:
    """Read the content of a single entry of the store."""
    for key, value in _loads(data).items():
        yield from _items(StoredBase.space_of(name), key, value)


def _items(space: str, key: Any, value: Any) -> Iterator[Item]:
    if space.startswith(("times/", "due/")):
        return  # the notes of a named state with a time to live
    if space == "attributes":
        changed = _loads(value)[0] if value is not None else {}
        for name, attribute in changed.items():
            yield Item(space, name, attribute)
    elif space.startswith(HeldSpace.PREFIX):
        yield Item(space, value.key, dict(zip(value.names, _opened(value.values), strict=True)))
    else:
        yield Item(space.removeprefix("named/"), key, _opened(value))


def _opened(value: Any) -> Any:
    return _loads(value.data) if isinstance(value, Kept) else value


def _loads(data: bytes) -> Any:
    return _Unpickler(io.BytesIO(data)).load()
