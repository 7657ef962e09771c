"""Groupings: which tasks of a subscriber receive a tuple. Values only; execution routes by them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

__all__ = [
    "All",
    "Custom",
    "CustomGrouping",
    "Direct",
    "FieldsGrouping",
    "Global",
    "Grouping",
    "LocalOrShuffle",
    "NoneGrouping",
    "PartialKey",
    "Shuffle",
    "describe",
]


@final
@dataclass(frozen=True, slots=True)
class Shuffle:
    """In turn to each task: each gets an equal share of what one task emits in a batch."""


@final
@dataclass(frozen=True, slots=True)
class LocalOrShuffle:
    """To a task in the same partition if there is one (no data moves), else as shuffle."""


@final
@dataclass(frozen=True, slots=True)
class NoneGrouping:
    """You do not care; at present the same as shuffle."""


@final
@dataclass(frozen=True, slots=True)
class FieldsGrouping:
    """Tuples with equal values in these fields always go to the same task."""

    fields: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class PartialKey:
    """As fields grouping, but each key has two tasks, of which the less loaded one gets it."""

    fields: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class All:
    """A copy to every task."""


@final
@dataclass(frozen=True, slots=True)
class Global:
    """Everything to the task with the lowest number."""


@final
@dataclass(frozen=True, slots=True)
class Direct:
    """The emitter picks the task with ``emit_direct``."""


class CustomGrouping(ABC):
    """A grouping of your own. It must be a pure function: the same answer for the same arguments.

    The engine may ask twice for the same tuple (Spark runs a task again), and the answers must
    agree; so no random numbers, no counters kept on ``self``.
    """

    @abstractmethod
    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        """Return the tasks that get a copy: several, one or none.

        Args:
            values: the tuple's values.
            tasks: the task numbers of the subscriber.
            sequence: the tuple's number among those that this task emits to this stream in this
                batch; for going round in turn.
        """


@final
@dataclass(frozen=True, slots=True)
class Custom:
    """The tasks that a :class:`CustomGrouping` chooses."""

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
        case Custom(custom):
            return f"custom({type(custom).__name__})"
        case NoneGrouping():
            return "none"
        case LocalOrShuffle():
            return "local_or_shuffle"
        case _:
            return type(grouping).__name__.lower()
