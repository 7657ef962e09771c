"""Spaces: the parts of a task's state, each with keys of its own.

What is committed is the *base*. What the running batch changes lies over it as *fresh* entries,
so that a batch that never commits is taken back by dropping them, and one that commits is logged
by writing them down. All processes put the same fresh entries over the same base in the same way;
so the order of a space's keys is the same in all of them, which matters because bolts emit by it.
"""

from collections.abc import Iterator
from typing import Any

from sparkstorm.state.committed import Base, MemoryEntries
from sparkstorm.state.kept import DELETED, MISSING
from sparkstorm.state.undo import Call

__all__ = ["Space"]


class Space:
    """Keys with values that never change in place.

    Args:
        name: what the log knows it by.
        call: told of each change, so that a call can be undone.
        base: what is committed; in memory if None.
    """

    __slots__ = ("_base", "_call", "_fresh", "name")

    def __init__(self, name: str, call: Call, base: Base | None = None) -> None:
        self.name = name
        self._call = call
        self._base: Base = MemoryEntries() if base is None else base
        self._fresh: dict[Any, Any] = {}

    # --- in a batch ----------------------------------------------------------------------------

    def find(self, key: Any) -> Any:
        """Return the value of a key as it is kept, or MISSING."""
        value = self._fresh.get(key, MISSING)
        if value is MISSING:
            return self._base.get(key, MISSING)
        return MISSING if value is DELETED else value

    def change(self, key: Any, value: Any) -> None:
        """Set a value, or remove it (DELETED)."""
        self._call.note(self, key, self._fresh.get(key, MISSING))
        self._fresh[key] = value

    def restore(self, key: Any, entry: Any) -> None:
        """Set a fresh entry to what it was."""
        if entry is MISSING:
            del self._fresh[key]
        else:
            self._fresh[key] = entry

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """All keys with their values as they are kept; changing them meanwhile does no harm."""
        base, fresh = self._base, self._fresh
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
        """What the batch has changed."""
        return self._fresh

    def settle(self) -> None:
        """The batch has committed."""
        fresh, self._fresh = self._fresh, {}
        self.apply(fresh)

    def drop(self) -> None:
        """The batch has not committed."""
        self._fresh = {}

    def apply(self, changes: dict[Any, Any]) -> None:
        """Take over what a batch has changed and committed."""
        self._base.take(changes)

    def forget(self) -> None:
        """Empty it: it is going to be read anew."""
        self._base.clear()
        self._fresh = {}

    def __reduce__(self) -> Any:
        raise TypeError("the state cannot be pickled; it is kept by the engine")
