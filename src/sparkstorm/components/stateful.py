"""Bolts that keep state, and what they see of it."""

from collections.abc import Iterator
from typing import Any, Protocol

from sparkstorm.components.bolt import Bolt
from sparkstorm.tuples import Tuple

__all__ = ["HeldTuples", "KeyValueState", "State", "StatefulBolt"]


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

    def add(self, key: Any, amount: Any = 1) -> Any:
        """Add to the value of a key and return the sum: the quickest way to count.

        A key that is not there gets the amount. Undone if ``execute`` raises.

        Args:
            key: the key.
            amount: a number, or whatever ``+`` adds to such a value.
        """
        ...

    def delete(self, key: Any) -> None:
        """Remove a key; nothing happens if it is not there."""
        ...

    def items(self, prefix: Any = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over keys and values of this task, in the same order in a repeated run.

        Args:
            prefix: only keys that start with it: text, bytes, or a tuple for keys that are
                tuples. Looks at every key.
        """
        ...

    def keys(self, prefix: Any = None) -> Iterator[Any]:
        """Iterate over keys alone, as :meth:`items` does."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int: ...


class HeldTuples(Protocol):
    """Tuples that a task keeps over batches, by key, to be acked or failed later.

    A held tuple keeps its message open. Emit with it as an anchor and ack it in any later batch,
    or fail it: it then leaves by itself. The engine drops it when its message has ended without
    it (timed out, or failed elsewhere), and when it belongs to a driver that is gone, since the
    source gives that message again. A tuple can be held in one place only.
    """

    def add(self, key: Any, tup: Tuple) -> None:
        """Hold a tuple under a key. Undone if ``execute`` raises.

        Raises:
            TrackingError: it was acked or failed, is held elsewhere, or is of another batch.
        """
        ...

    def get(self, key: Any) -> list[Tuple]:
        """Return what is held under a key, the oldest first; an empty list if nothing is."""
        ...

    def pop(self, key: Any) -> list[Tuple]:
        """Return what is held under a key and hold it no longer: ack, fail or add it again."""
        ...

    def remove(self, tup: Tuple) -> None:
        """Hold one tuple no longer; nothing happens if it is not held here."""
        ...

    def keys(self) -> list[Any]:
        """The keys under which anything is held, the one with the oldest tuple first."""
        ...

    def held_since(self, time: float) -> list[Tuple]:
        """Return what is held since that time or longer, the oldest first.

        Args:
            time: in seconds since 1970, on the scale of :attr:`TaskContext.batch_time`.
        """
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int:
        """How many tuples are held; looks at each one that was used in this batch."""
        ...


class State(KeyValueState, Protocol):
    """What :meth:`StatefulBolt.init_state` is handed: a key-value state with others beside it."""

    def named(self, name: str, *, ttl_secs: float | None = None) -> KeyValueState:
        """Return the key-value state of this name; the same object at each call.

        Args:
            name: any text.
            ttl_secs: how long a key stays after it was last put, by the time of the batches
                (:attr:`sparkstorm.TaskContext.batch_time`): never less, and at most a hundredth
                more. None: for ever. It may change from run to run.
        """
        ...

    def tuples(self, name: str) -> HeldTuples:
        """Return the tuples held under this name; the same object at each call."""
        ...


class StatefulBolt(Bolt):
    """A :class:`Bolt` with a key-value state that survives restarts."""

    state: State
    """Set by :meth:`init_state`."""

    def init_state(self, state: State) -> None:
        """Called once per task and process, after ``prepare``; keep ``state`` for ``execute``."""
        self.state = state
