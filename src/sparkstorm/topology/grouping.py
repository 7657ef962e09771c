"""Groupings: which tasks of a subscriber receive a tuple. Values only; execution routes by them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

__all__ = [
    "All",
    "Custom",
    "CustomGrouping",
    "Direct",
    "FieldsGrouping",
    "FunctionGrouping",
    "Global",
    "Grouping",
    "GroupingFunction",
    "LocalOrShuffle",
    "NoneGrouping",
    "PartialKey",
    "Shuffle",
    "describe",
]


@final
@dataclass(frozen=True, slots=True)
class Shuffle:
    """Each task in turn: in a batch every task gets an equal share of one emitter's tuples."""


@final
@dataclass(frozen=True, slots=True)
class LocalOrShuffle:
    """A task in the same partition if there is one, so no data moves; else shuffle."""


@final
@dataclass(frozen=True, slots=True)
class NoneGrouping:
    """Any grouping will do; at present the same as shuffle."""


@final
@dataclass(frozen=True, slots=True)
class FieldsGrouping:
    """The same task for equal values in the given fields."""

    fields: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class PartialKey:
    """Two tasks for each key; a tuple goes to the less loaded of the two."""

    fields: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class All:
    """A copy to every task."""


@final
@dataclass(frozen=True, slots=True)
class Global:
    """The task with the lowest number, for all tuples."""


@final
@dataclass(frozen=True, slots=True)
class Direct:
    """The task the emitter names with ``emit_direct``."""


class CustomGrouping(ABC):
    """A grouping of your own: a pure function, with equal results for equal arguments.

    The engine may ask twice for the same tuple, since Spark may run a task again, and both answers
    must agree. So use no random numbers and no counters on ``self``.
    """

    @abstractmethod
    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        """Return the tasks that get a copy: several, one or none.

        Args:
            values: the tuple's values.
            tasks: the task numbers of the subscriber.
            sequence: the tuple's number among this task's emits to the stream in the batch, for
                round-robin.
        """


@final
@dataclass(frozen=True, slots=True)
class FunctionGrouping(CustomGrouping):
    """A custom grouping by a function of a tuple's values and the subscriber's tasks.

    >>> by_size = FunctionGrouping(lambda values, tasks: [tasks[values[0] > 100]])
    >>> by_size.choose_tasks([7], [3, 4], 0)
    [3]
    """

    function: "GroupingFunction"

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        """Return the tasks that the function chooses."""
        return self.function(values, tasks)


GroupingFunction: TypeAlias = Callable[[Sequence[Any], Sequence[int]], Sequence[int]]
"""Returns the tasks for a tuple, by its values and the task numbers of the subscriber."""


@final
@dataclass(frozen=True, slots=True)
class Custom:
    """The tasks chosen by a :class:`CustomGrouping`."""

    grouping: CustomGrouping


Grouping: TypeAlias = (
    Shuffle
    | LocalOrShuffle
    | NoneGrouping
    | FieldsGrouping
    | PartialKey
    | All
    | Global
    | Direct
    | Custom
)


def describe(grouping: Grouping) -> str:
    """Return a grouping as people write it.

    >>> describe(FieldsGrouping(("word",)))
    'fields(word)'
    """
    match grouping:
        case FieldsGrouping(fields):
            return f"fields({', '.join(fields)})"
        case PartialKey(fields):
            return f"partial_key({', '.join(fields)})"
        case Custom(FunctionGrouping(function)):
            return f"custom({getattr(function, '__name__', type(function).__name__)})"
        case Custom(custom):
            return f"custom({type(custom).__name__})"
        case NoneGrouping():
            return "none"
        case LocalOrShuffle():
            return "local_or_shuffle"
        case _:
            return type(grouping).__name__.lower()
