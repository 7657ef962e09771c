"""The tuple: what a bolt receives."""

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
    """What tuples of one delivery share: where they come from and how they are tracked."""

    index_of: dict[str, int]
    names: tuple[str, ...]
    component: str
    stream: str
    task: int

    def identity(self, index: int) -> str:
        """The tuple's id as text, for people and shells; empty when it is not tracked."""
        ...

    def attempt(self, index: int) -> int:
        """Which try of its message this tuple belongs to, counted from 1."""
        ...


class Tuple:
    """A named list of values that a bolt receives.

    ``tup["word"]`` and ``tup[0]`` read a value. Two tuples are equal only if they are the same
    one, as in Storm. A tuple belongs to the task and batch that received it and cannot be pickled;
    to keep one for a later batch, hold it (:class:`sparkstorm.HeldTuples`).
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
        """The field names of the stream it came on."""
        return self._origin.names

    @property
    def component(self) -> str:
        """The id of the component that emitted it."""
        return self._origin.component

    @property
    def stream(self) -> str:
        """The stream that it was emitted to."""
        return self._origin.stream

    @property
    def task(self) -> int:
        """The task that emitted it."""
        return self._origin.task

    @property
    def id(self) -> str:
        """Its 64-bit id as text, empty if it is not tracked."""
        return self._origin.identity(self._index)

    @property
    def attempt(self) -> int:
        """Which try of its message this is: 1 at first, more after failures."""
        return self._origin.attempt(self._index)

    @property
    def is_tick(self) -> bool:
        """Whether it is a tick tuple: no data, only the news that time has passed."""
        return self._origin.stream == TICK

    def asdict(self) -> dict[str, Any]:
        """The values by field name."""
        return dict(zip(self.fields, self.values, strict=True))

    def __reduce__(self) -> Any:
        raise TrackingError(
            f"{self!r} cannot be kept there: it is tracked where it was received. Hold it in "
            f"state.tuples(name) of a StatefulBolt, or keep its values (tup.values)"
        )

    def __repr__(self) -> str:
        values = ", ".join(f"{n}={v!r}" for n, v in zip(self.fields, self.values, strict=False))
        return f"Tuple({self.component}/{self.stream}: {values})"
