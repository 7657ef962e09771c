"""Undo of a call of user code: the changes that the call made in the state."""

from typing import Any, Protocol

__all__ = ["Call", "Undoable"]


class Undoable(Protocol):
    """A part of the state that can take a change back."""

    def restore(self, key: Any, entry: Any) -> None:
        """Set a key's entry to its value before a change."""
        ...


class Call:
    """The changes of the running ``execute``: entries before each change, in order.

    The caller of ``execute`` sets ``changes`` to 0 first. Usually a call changes a single key, so
    the first change stands in the slots ``space``, ``key`` and ``old``, where a note costs next to
    nothing. A list for the first change, cleared after each call, would cost a counting bolt a
    twentieth of its time.
    """

    __slots__ = ("_later", "changes", "key", "old", "space")

    def __init__(self) -> None:
        self.changes = 0
        self.space: Undoable | None = None
        self.key: Any = None
        self.old: Any = None
        self._later: list[tuple[Undoable, Any, Any]] = []

    def note(self, space: Undoable, key: Any, old: Any) -> None:
        """Note an entry before a change."""
        if self.changes == 0:
            self.space, self.key, self.old = space, key, old
        else:
            if self.changes == 1:  # the list may have changes of an earlier call
                self._later = []
            self._later.append((space, key, old))
        self.changes += 1

    def undo(self) -> None:
        """Take all changes back, the last first."""
        if self.changes > 1:
            for space, key, old in reversed(self._later):
                space.restore(key, old)
        if self.changes and self.space is not None:
            self.space.restore(self.key, self.old)
        self.changes = 0
