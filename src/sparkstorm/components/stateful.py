"""Bolts that keep state, and what they see of it."""

from collections.abc import Iterator
from typing import Any, Protocol

from sparkstorm.components.bolt import Bolt

__all__ = ["KeyValueState", "StatefulBolt"]


class KeyValueState(Protocol):
    """The state of one task: keys and values of any picklable kind.

    It commits with the batch: exactly once per batch, however often Spark runs the task. A value
    that is changed in place without ``put`` changes nowhere.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        ...

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key. Undone if ``execute`` raises."""
        ...

    def delete(self, key: Any) -> None:
        """Remove a key; nothing happens if it is not there."""
        ...

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over all keys and values of this task."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int: ...


class StatefulBolt(Bolt):
    """A :class:`Bolt` with a key-value state that survives restarts."""

    def init_state(self, state: KeyValueState) -> None:
        """Called once per task and process, after ``prepare``; keep ``state`` for ``execute``."""
        self.state = state
