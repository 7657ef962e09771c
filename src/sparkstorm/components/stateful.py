"""Stateful bolts, and their view of the state."""

from collections.abc import Iterator
from typing import Any, Protocol

from sparkstorm.components.bolt import Bolt
from sparkstorm.tuples import Tuple

__all__ = ["HeldTuples", "KeyValueState", "State", "StatefulBolt"]


class KeyValueState(Protocol):
    """The state of one task: keys and values of any picklable type.

    State commits with the batch: exactly once per batch, however often Spark runs the task. Call
    ``put`` after changing a value in place; otherwise the change is lost.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        ...

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key. Rolled back if ``execute`` raises."""
        ...

    def add(self, key: Any, amount: Any = 1) -> Any:
        """Add to the value of a key and return the sum: the quickest way to count.

        A missing key gets the amount. Rolled back if ``execute`` raises.

        Args:
            key: the key.
            amount: a number, or any object ``+`` can add to the value.
        """
        ...

    def delete(self, key: Any) -> None:
        """Remove a key; a missing key is no error."""
        ...

    def items(self, prefix: Any = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over keys and values of this task, in the same order in a repeated run.

        Args:
            prefix: only keys starting with the prefix: text, bytes, or a tuple for tuple keys. The
                iteration still looks at every key.
        """
        ...

    def keys(self, prefix: Any = None) -> Iterator[Any]:
        """Iterate over keys alone, as :meth:`items` does."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int: ...


class HeldTuples(Protocol):
    """Tuples a task keeps over batches, by key, to ack or fail later.

    A held tuple keeps its message open. In any later batch, emit with the tuple as an anchor and
    ack it, or fail it: acked and failed tuples leave by themselves. The engine drops a held tuple
    when its message has ended elsewhere, by a time-out or a failure. After a restart of the driver
    the engine also drops tuples of messages that the source gives again. A tuple can be held in one
    place only.
    """

    def add(self, key: Any, tup: Tuple) -> None:
        """Hold a tuple under a key. Rolled back if ``execute`` raises.

        Raises:
            TrackingError: the tuple is acked or failed, is held elsewhere, or is of another batch.
        """
        ...

    def get(self, key: Any) -> list[Tuple]:
        """Return the tuples held under a key, oldest first; an empty list if there are none."""
        ...

    def pop(self, key: Any) -> list[Tuple]:
        """Return the tuples held under a key and release them: ack, fail or add each again."""
        ...

    def remove(self, tup: Tuple) -> None:
        """Release one tuple; a tuple not held here is no error."""
        ...

    def keys(self) -> list[Any]:
        """Return the keys with held tuples, the key of the oldest tuple first."""
        ...

    def held_since(self, time: float) -> list[Tuple]:
        """Return the tuples held since a time or longer, oldest first.

        Args:
            time: in seconds since 1970, on the scale of :attr:`TaskContext.batch_time`.
        """
        ...

    def __contains__(self, key: Any) -> bool: ...

    def __len__(self) -> int:
        """Count the held tuples; looks at each tuple used in this batch."""
        ...


class State(KeyValueState, Protocol):
    """The state handed to :meth:`StatefulBolt.init_state`: keys and values, and named states."""

    def named(self, name: str, *, ttl_secs: float | None = None) -> KeyValueState:
        """Return the key-value state of a name; the same object at each call.

        Args:
            name: any text.
            ttl_secs: how long a key stays after its last put, by the time of batches
                (:attr:`sparkstorm.TaskContext.batch_time`): never less, and at most a hundredth
                more. None: for ever. The value may change from run to run.
        """
        ...

    def tuples(self, name: str) -> HeldTuples:
        """Return the tuples held under a name; the same object at each call."""
        ...


class StatefulBolt(Bolt):
    """A :class:`Bolt` with a key-value state that survives restarts."""

    state: State
    """:meth:`init_state` sets the state."""

    def init_state(self, state: State) -> None:
        """Called once per task and process, after ``prepare``; keep ``state`` for ``execute``."""
        self.state = state
