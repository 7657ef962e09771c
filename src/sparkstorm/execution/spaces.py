"""Spaces: the parts of a task's state beside its default one, in the same journal and log."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

__all__ = ["MISSING", "Note", "Space", "SpaceKey"]

MISSING: Any = object()
"""Stands for the value of a key that is not there."""

Note: TypeAlias = Callable[["SpaceKey", Any], None]
"""Told of each change: the key, and the value before it."""


class SpaceKey(NamedTuple):
    """A key of a space, as the journal and the log know it."""

    space: str
    key: Any


class Space:
    """Keys with values that never change in place; changes are noted, so that they can be undone.

    Args:
        name: what the log knows it by.
        note: called before each change.
    """

    def __init__(self, name: str, note: Note) -> None:
        self.name = name
        self._note = note
        self._data: dict[Any, Any] = {}

    def find(self, key: Any, default: Any = MISSING) -> Any:
        """Return the value of a key as it is kept."""
        return self._data.get(key, default)

    def change(self, key: Any, value: Any) -> None:
        """Set a value, or remove it (MISSING), such that it is logged and can be undone."""
        self._note(SpaceKey(self.name, key), self._data.get(key, MISSING))
        self.restore(key, value)

    def restore(self, key: Any, value: Any) -> None:
        """Set a value, or remove it (MISSING), without a note: an undo, or what others wrote."""
        if value is MISSING:
            self._data.pop(key, None)
        else:
            self._data[key] = value

    def forget(self) -> None:
        """Empty it, without a note: it is going to be read anew."""
        self._data.clear()

    def entries(self) -> Iterator[tuple[SpaceKey, Any]]:
        """All keys with their values, as a snapshot keeps them."""
        return ((SpaceKey(self.name, key), value) for key, value in self._data.items())

    def __len__(self) -> int:
        return len(self._data)

    def __reduce__(self) -> Any:
        raise TypeError("the state cannot be pickled; it is kept by the engine")
