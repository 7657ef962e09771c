"""Outboxes: the tuples that a task emitted to a stream in a batch, before routing."""

import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from sparkstorm.acking.anchors import Parent
from sparkstorm.acking.lineage import Indexes
from sparkstorm.errors import EmitError
from sparkstorm.packets.columns import Column, make_column
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.streams import Stream, values_of
from sparkstorm.tasks.routing import Tasks
from sparkstorm.texts.showing import shown
from sparkstorm.topology.grouping import FieldsGrouping, PartialKey

__all__ = ["Emitted", "Outbox", "make_outboxes", "task_number"]


class Outbox:
    """The tuples emitted to a stream, with their parents: two lists that grow together.

    A stream of one field keeps bare values instead of rows: the usual case is then a plain list.

    The parents of a basic bolt's tuples come in the order of the inputs. So ``ends``, the number of
    rows after each input, stands for the parents, and ``parents`` is empty.

    Attributes:
        takes: the number of values of an emit that needs no further check; -1 if there is none.
        wanted: whether anyone reads the stream.
        unread: how many tuples were emitted although nobody reads the stream.
    """

    __slots__ = (
        "_keys",
        "direct",
        "ends",
        "key",
        "parents",
        "rows",
        "stream",
        "takes",
        "unread",
        "wanted",
        "width",
    )

    def __init__(self, key: StreamKey, stream: Stream, *, wanted: bool, keys: frozenset[str]):
        self.key = key
        self.stream = stream
        self.width = len(stream.fields)
        self.wanted = wanted
        self.takes = self.width if wanted and not stream.direct else -1
        self.rows: list[Any] = []
        self.parents: list[Parent] = []
        self.ends: list[int] = []
        self.direct: list[int] = []
        self.unread = 0
        self._keys = keys

    def add(self, values: Sequence[Any], parent: Parent, task: int | None = None) -> None:
        """Add a tuple.

        Raises:
            EmitError: the number of values or the way of emitting does not fit the stream.
        """
        kind = type(values)
        if kind is not list and kind is not tuple:
            values = values_of(values, self.stream.names, str(self.key))
        # One test for both mistakes; which one it was is found out when it is told.
        if len(values) != self.width or (task is None) == self.stream.direct:
            raise self._misfit(values, task)
        if task is not None:
            task = task_number(task)
        # A stream without readers is checked and counted like any other, but keeps nothing.
        if not self.wanted:
            self.unread += 1
        else:
            self.rows.append(values[0] if self.width == 1 else tuple(values))
            self.parents.append(parent)
            if task is not None:
                self.direct.append(task)

    def __len__(self) -> int:
        return len(self.rows)

    def clear(self) -> None:
        """Drop all tuples at the end of a batch."""
        self.drop_since(0)
        self.ends.clear()
        self.unread = 0

    def drop_since(self, length: int) -> None:
        """Drop the tuples beyond the first ``length``."""
        del self.rows[length:], self.parents[length:], self.direct[length:]

    def drop_rows(self, positions: Sequence[int]) -> None:
        """Drop single tuples."""
        self.spell_parents()
        gone = set(positions)
        for values in (self.rows, self.parents, self.direct):
            values[:] = [value for row, value in enumerate(values) if row not in gone]

    def columns(self) -> dict[str, Column]:
        """Return the values by field.

        Raises:
            CoderError: some values do not fit the declared types; ``rows`` has their positions.
        """
        names = self.stream.names
        if self.width == 1:
            return {names[0]: self._column(0, self.rows)}
        made: dict[str, Column] = {}
        for index in range(self.width):
            made[names[index]] = self._column(index, [row[index] for row in self.rows])
        return made

    def last_row(self) -> Sequence[Any]:
        """The values of the last tuple."""
        return [self.rows[-1]] if self.width == 1 else self.rows[-1]

    def last_columns(self) -> dict[str, Column]:
        """The values of the last tuple by field.

        Raises:
            CoderError: some do not fit the declared types.
        """
        return {
            name: self._column(index, [value])
            for index, (name, value) in enumerate(
                zip(self.stream.names, self.last_row(), strict=True)
            )
        }

    def direct_tasks(self) -> Tasks | None:
        """Return the tasks picked by the emitter, for a direct stream."""
        return np.array(self.direct, np.int32) if self.stream.direct else None

    def spell_parents(self) -> list[Parent]:
        """Return the parents as a list, with an element per row from here on."""
        if self.ends:
            self.parents.extend(self._parents_by_ends().tolist())
            self.ends.clear()
        return self.parents

    def parents_by_row(self) -> Indexes:
        """Return the parents as an array."""
        return self._parents_by_ends() if self.ends else np.array(self.parents, np.int64)

    def _parents_by_ends(self) -> Indexes:
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))

    def _column(self, index: int, values: list[Any]) -> Column:
        field = self.stream.fields[index]
        return make_column(field, values, repeats=field.name in self._keys)

    def _misfit(self, values: Sequence[Any], task: int | None) -> EmitError:
        if len(values) != self.width:
            return EmitError(
                f"stream {str(self.key)!r} has the fields {', '.join(self.stream.names) or 'none'}"
                f" ({self.width}), but {len(values)} values were emitted: {shown(list(values))}"
            )
        if task is None:
            return EmitError(f"stream {str(self.key)!r} is direct: use emit_direct")
        return EmitError(f"stream {str(self.key)!r} is not direct: use emit, or declare it direct")


def task_number(task: Any) -> int:
    """Return the task number of an ``emit_direct``; dispatch checks later that the task exists.

    Raises:
        EmitError: the value is no task number at all.
    """
    with suppress(TypeError):
        number = operator.index(task)
        if 0 <= number < _MOST_TASKS:
            return number
    raise EmitError(f"emit_direct goes to the number of a task, not to {shown(task)}")


_MOST_TASKS = 2**31
"""Task numbers travel in 32 bits."""


class Emitted(Protocol):
    """The dispatcher's view of a stream's tuples: an :class:`Outbox`, or the rows of a load."""

    @property
    def key(self) -> StreamKey:
        """The stream's key."""
        ...

    @property
    def stream(self) -> Stream:
        """The stream's declaration."""
        ...

    def __len__(self) -> int: ...

    def columns(self) -> dict[str, Column]:
        """Return the values by field."""
        ...

    def parents_by_row(self) -> Indexes:
        """Return the parents as an array."""
        ...

    def direct_tasks(self) -> Tasks | None:
        """Return the tasks picked by the emitter, for a direct stream."""
        ...


def make_outboxes(plan: Plan, component: str) -> dict[str, Outbox]:
    """Make an empty outbox for each stream of a component."""
    boxes = {}
    for name, stream in plan.spec(component).streams.items():
        key = StreamKey(component, name)
        routes = plan.routes[key]
        keys = frozenset(
            field
            for route in routes
            if isinstance(route.grouping, FieldsGrouping | PartialKey)
            for field in route.grouping.fields
        )
        boxes[name] = Outbox(key, stream, wanted=bool(routes) or key in plan.to_driver, keys=keys)
    return boxes
