"""A space: a part of a task's state, with keys of its own.

The committed content is the *base*. The running batch's changes lie over the base as *fresh*
entries. If the batch never commits, the space drops the fresh entries; if the batch commits, the
log has them. All processes lay the same fresh entries over the same base in the same way. So the
order of a space's keys is the same in all processes, and bolts may emit in this order.
"""

from collections.abc import Iterator
from typing import Any

from sparkstorm.state.kept import DELETED, MISSING
from sparkstorm.state.spaces.base import Base, MemoryBase
from sparkstorm.state.spaces.undo import Call

__all__ = ["Space"]


class Space:
    """Keys with values that never change in place.

    Args:
        name: the space's name in the log.
        call: notes each change for undo.
        base: the committed content; in memory if None.
    """

    __slots__ = ("_base", "_call", "_fresh", "name")

    def __init__(self, name: str, call: Call, base: Base | None = None) -> None:
        self.name = name
        self._call = call
        self._base: Base = MemoryBase() if base is None else base
        self._fresh: dict[Any, Any] = {}

    # --- in a batch ----------------------------------------------------------------------------

    def find(self, key: Any) -> Any:
        """Return the stored form of a key's value, or MISSING."""
        value = self._fresh.get(key, MISSING)
        if value is MISSING:
            return self._base.get(key, MISSING)
        return MISSING if value is DELETED else value

    def change(self, key: Any, value: Any) -> None:
        """Set the stored form of a key's value, or remove the key (DELETED)."""
        self._call.note(self, key, self._fresh.get(key, MISSING))
        self._fresh[key] = value

    def restore(self, key: Any, entry: Any) -> None:
        """Set a fresh entry to its value before a change."""
        if entry is MISSING:
            del self._fresh[key]
        else:
            self._fresh[key] = entry

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Yield all keys with the stored forms of their values; changes meanwhile do no harm."""
        base, fresh = self._base, self._fresh
        # New keys come behind those of the base, in the order of their first change.
        added = [key for key in fresh if key not in base]
        for key, value in base.items():
            now = fresh.get(key, value)
            if now is not DELETED:
                yield key, now
        for key in added:
            value = fresh.get(key, DELETED)
            if value is not DELETED:
                yield key, value

    # --- between batches -----------------------------------------------------------------------

    def fresh(self) -> dict[Any, Any]:
        """Return the batch's changes."""
        return self._fresh

    def commit(self) -> None:
        """Make the batch's changes part of the base: the batch has committed."""
        fresh, self._fresh = self._fresh, {}
        self.apply(fresh)

    def roll_back(self) -> None:
        """Drop the batch's changes: the batch has not committed."""
        self._fresh = {}

    def apply(self, changes: dict[Any, Any]) -> None:
        """Apply committed changes to the base."""
        self._base.apply(changes)

    def clear(self) -> None:
        """Drop the whole content before it is read anew."""
        self._base.clear()
        self._fresh = {}

    def __reduce__(self) -> Any:
        raise TypeError("the state cannot be pickled; it is kept by the engine")
