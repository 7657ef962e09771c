"""Keys and values by key, for bolts."""

import pickle
from collections.abc import Iterator
from typing import Any

from sparkstorm.state.kept import ATOMS, DELETED, MISSING, Kept
from sparkstorm.state.names import check_key
from sparkstorm.state.spaces.base import Base
from sparkstorm.state.spaces.space import Space
from sparkstorm.state.spaces.undo import Call

__all__ = ["KeyValues", "has_prefix"]


class KeyValues(Space):
    """A space of picklable keys and values (:class:`sparkstorm.KeyValueState`).

    A mutable value is stored as a pickle, so a change in place without ``put`` has no effect.
    """

    __slots__ = ("_count",)

    def __init__(self, name: str, call: Call, base: Base | None = None) -> None:
        super().__init__(name, call, base)
        self._count = len(self._base)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        try:
            value = self._fresh[key]
        except KeyError:
            value = self._base.get(key, default)
        return value if type(value) is not Kept else _opened(value, default)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        if type(value) is not int and type(value) not in ATOMS:
            value = Kept(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        call, fresh = self._call, self._fresh
        try:
            old = fresh[key]
        except KeyError:
            old = MISSING
            if key not in self._base:
                # Text, the usual key, needs no check and pays for none.
                if type(key) is not str:
                    check_key(key)
                self._count += 1
        else:
            if old is DELETED:
                self._count += 1
        fresh[key] = value
        if not call.changes:  # as call.note does, without another call
            call.space, call.key, call.old, call.changes = self, key, old, 1
        else:
            call.note(self, key, old)

    def add(self, key: Any, amount: Any = 1) -> Any:
        """Add to the value of a key and return the sum."""
        call, fresh = self._call, self._fresh
        old = fresh.get(key)
        if type(old) is not int:  # not changed in this batch so far, or no plain number
            return self._add(key, amount)
        total = old + amount
        if type(total) is not int:
            return self._add(key, amount)
        fresh[key] = total  # from here on as in put: a count that goes on is the usual case
        if not call.changes:
            call.space, call.key, call.old, call.changes = self, key, old, 1
        else:
            call.note(self, key, old)
        return total

    def delete(self, key: Any) -> None:
        """Remove a key."""
        if key in self:
            self.change(key, DELETED)
            self._count -= 1

    def items(self, prefix: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield keys and values; with a prefix, only keys that begin with it."""
        return (
            (key, value if type(value) is not Kept else _opened(value, None))
            for key, value in self.entries()
            if prefix is None or has_prefix(key, prefix)
        )

    def keys(self, prefix: Any = None) -> Iterator[Any]:
        """Yield keys; with a prefix, only keys that begin with it."""
        return (key for key, _ in self.entries() if prefix is None or has_prefix(key, prefix))

    def __contains__(self, key: Any) -> bool:
        return self.find(key) is not MISSING

    def __len__(self) -> int:
        return self._count

    def restore(self, key: Any, entry: Any) -> None:
        """Set a fresh entry to its value before a change."""
        before = key in self
        super().restore(key, entry)
        self._count += (key in self) - before

    def roll_back(self) -> None:
        """Drop the batch's changes: the batch has not committed."""
        super().roll_back()
        self._count = len(self._base)

    def apply(self, changes: dict[Any, Any]) -> None:
        """Apply committed changes to the base."""
        super().apply(changes)
        self._count = len(self._base)

    def clear(self) -> None:
        """Drop the whole content before it is read anew."""
        super().clear()
        self._count = len(self._base)

    def _add(self, key: Any, amount: Any) -> Any:
        value = self.get(key, MISSING)
        total = amount if value is MISSING else value + amount
        self.put(key, total)
        return total


def has_prefix(key: Any, prefix: Any) -> bool:
    """Whether a key begins with a prefix: text with text, bytes with bytes, tuple with tuple.

    >>> has_prefix("user/7", "user/"), has_prefix(("user", 7), ("user",)), has_prefix(7, "user/")
    (True, True, False)
    """
    if isinstance(key, str) and isinstance(prefix, str):
        return key.startswith(prefix)
    if isinstance(key, bytes) and isinstance(prefix, bytes):
        return key.startswith(prefix)
    if isinstance(key, tuple) and isinstance(prefix, tuple):
        return key[: len(prefix)] == prefix
    return False


def _opened(value: Kept, default: Any) -> Any:
    if value is DELETED:
        return default
    return pickle.loads(value.data)  # noqa: S301 - put by the user's own bolt
