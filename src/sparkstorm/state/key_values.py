"""Keys and values as a bolt sees them."""

import pickle
from collections.abc import Iterator
from typing import Any

from sparkstorm.state.committed import Base
from sparkstorm.state.kept import ATOMS, DELETED, MISSING, Kept
from sparkstorm.state.names import check_key
from sparkstorm.state.spaces import Space
from sparkstorm.state.undo import Call

__all__ = ["KeyValues", "has_prefix"]


class KeyValues(Space):
    """A space of any picklable keys and values (:class:`sparkstorm.KeyValueState`).

    Values that can change in place are kept pickled, so that one that is changed without ``put``
    changes nowhere.
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
                if type(key) is not str:
                    check_key(key)
                self._count += 1
        else:
            if old is DELETED:
                self._count += 1
        fresh[key] = value
        if call.space is None:  # what call.note does, without another call
            call.space, call.key, call.old = self, key, old
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
        if call.space is None:
            call.space, call.key, call.old = self, key, old
        else:
            call.note(self, key, old)
        return total

    def delete(self, key: Any) -> None:
        """Remove a key."""
        if key in self:
            self.change(key, DELETED)
            self._count -= 1

    def items(self, prefix: Any = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over the keys that start with a prefix, and their values; all if it is None."""
        return (
            (key, value if type(value) is not Kept else _opened(value, None))
            for key, value in self.entries()
            if prefix is None or has_prefix(key, prefix)
        )

    def keys(self, prefix: Any = None) -> Iterator[Any]:
        """Iterate over the keys that start with a prefix; over all if it is None."""
        return (key for key, _ in self.entries() if prefix is None or has_prefix(key, prefix))

    def __contains__(self, key: Any) -> bool:
        return self.find(key) is not MISSING

    def __len__(self) -> int:
        return self._count

    def restore(self, key: Any, entry: Any) -> None:
        """Set a fresh entry to what it was."""
        before = key in self
        super().restore(key, entry)
        self._count += (key in self) - before

    def drop(self) -> None:
        """The batch has not committed."""
        super().drop()
        self._count = len(self._base)

    def apply(self, changes: dict[Any, Any]) -> None:
        """Take over what a batch has changed and committed."""
        super().apply(changes)
        self._count = len(self._base)

    def forget(self) -> None:
        """Empty it: it is going to be read anew."""
        super().forget()
        self._count = len(self._base)

    def _add(self, key: Any, amount: Any) -> Any:
        value = self.get(key, MISSING)
        total = amount if value is MISSING else value + amount
        self.put(key, total)
        return total


def has_prefix(key: Any, prefix: Any) -> bool:
    """Whether a key starts with a prefix: text with text, bytes with bytes, tuple with tuple.

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
