"""Tuples: the values a bolt receives."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, final

from sparkstorm.errors import TrackingError

__all__ = ["SYSTEM", "TICK", "Fields", "Origin", "Tuple"]

SYSTEM = "__system"
"""The component id of the engine itself, as in Storm."""

TICK = "__tick"
"""The stream of the system's tick tuples."""


@final
class Fields:
    """Field names with their positions; one object serves all tuples of a stream.

    >>> Fields(["word", "n"]).index_of["n"]
    1
    """

    __slots__ = ("index_of", "names")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.index_of = {name: index for index, name in enumerate(self.names)}

    def __repr__(self) -> str:
        return f"Fields({list(self.names)})"


class Origin(Protocol):
    """The common facts of the tuples of one delivery: their source and their tracking."""

    index_of: dict[str, int]
    names: tuple[str, ...]
    component: str
    stream: str
    task: int

    def identity(self, index: int) -> str:
        """Return a tuple's id as text, for people; empty without tracking."""
        ...

    def attempt(self, index: int) -> int:
        """Return the number of the message's attempt that the tuple belongs to, from 1."""
        ...


class Tuple:
    """A named list of values, received by a bolt.

    ``tup["word"]`` and ``tup[0]`` read a value. As in Storm, a tuple equals only itself. A tuple
    belongs to the task and batch that received it and cannot be pickled. To keep a tuple for a
    later batch, hold it (:class:`sparkstorm.HeldTuples`).
    """

    __slots__ = ("_index", "_index_of", "_origin", "values")

    values: Sequence[Any]

    def __init__(self, values: Sequence[Any], origin: Origin, index: int) -> None:
        self.values = values
        self._origin = origin
        self._index_of = origin.index_of
        self._index = index

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            try:
                return self.values[self._index_of[key]]
            except KeyError:
                raise KeyError(f"{key!r}: the stream has the fields {self.fields}") from None
        return self.values[key]

    def __contains__(self, field: str) -> bool:
        return field in self._index_of

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @property
    def fields(self) -> tuple[str, ...]:
        """The field names of the tuple's stream."""
        return self._origin.names

    @property
    def component(self) -> str:
        """The id of the component that emitted the tuple."""
        return self._origin.component

    @property
    def stream(self) -> str:
        """The stream the tuple was emitted to."""
        return self._origin.stream

    @property
    def task(self) -> int:
        """The task that emitted the tuple."""
        return self._origin.task

    @property
    def id(self) -> str:
        """The tuple's 64-bit id as text; empty without tracking."""
        return self._origin.identity(self._index)

    @property
    def attempt(self) -> int:
        """The number of the message's attempt: 1 at first, more after failures."""
        return self._origin.attempt(self._index)

    @property
    def is_tick(self) -> bool:
        """Whether the tuple is a tick: no data, only the news that time has passed."""
        return self._origin.stream == TICK

    def asdict(self) -> dict[str, Any]:
        """Return the values by field name."""
        return dict(zip(self.fields, self.values, strict=True))

    def __reduce__(self) -> Any:
        raise TrackingError(
            f"{self!r} cannot be kept there: a tuple is tracked by the task that received it. "
            f"Hold it in state.tuples(name) of a StatefulBolt, or keep its values (tup.values)"
        )

    def __repr__(self) -> str:
        values = ", ".join(f"{n}={v!r}" for n, v in zip(self.fields, self.values, strict=False))
        return f"Tuple({self.component}/{self.stream}: {values})"
