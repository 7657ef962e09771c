"""What one call of user code has changed in the state, so that it can be taken back."""

from typing import Any, Protocol

__all__ = ["Call", "Undoable"]


class Undoable(Protocol):
    """A part of the state whose changes can be taken back."""

    def restore(self, key: Any, entry: Any) -> None:
        """Set a key's entry to what it was."""
        ...


class Call:
    """The changes that the running ``execute`` made: entries as they were, in order.

    Whoever calls ``execute`` sets ``space`` to None before. Usually a call changes one key, so the
    first change stands in the slots, where noting it costs next to nothing; a list for it, cleared
    after each call, would cost a counting bolt a twentieth of its time.
    """

    __slots__ = ("_changes", "key", "old", "space")

    def __init__(self) -> None:
        self.space: Undoable | None = None
        self.key: Any = None
        self.old: Any = None
        self._changes: list[tuple[Undoable, Any, Any]] = []

    def note(self, space: Undoable, key: Any, old: Any) -> None:
        """Remember what an entry was before a change."""
        if self.space is None:
            self.space, self.key, self.old = space, key, old
        else:
            if self.space is not self:  # from the second change on, they are listed
                self._changes = [(self.space, self.key, self.old)]
                self.space = self
            self._changes.append((space, key, old))

    def restore(self, key: Any, entry: Any) -> None:
        """Take back the listed changes, the last one first."""
        for space, changed, old in reversed(self._changes):
            space.restore(changed, old)

    def undo(self) -> None:
        """Take back what was changed since ``space`` was set to None."""
        if self.space is not None:
            self.space.restore(self.key, self.old)
            self.space = None
