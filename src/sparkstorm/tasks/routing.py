"""Routing: from a grouping to tasks, by pure functions, for all emitted tuples at once.

Nothing here draws a random number or counts beyond the batch: Spark may run a task twice, and both
runs must send every tuple to the same place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64, mix64
from sparkstorm.acking.lineage import Indexes
from sparkstorm.errors import InternalError
from sparkstorm.packets.columns import PLAIN_TYPES, CoderError, Column, rows_of
from sparkstorm.packets.hashing import combine, combine_one, hash_value
from sparkstorm.planning.plan import Route
from sparkstorm.streams import Stream
from sparkstorm.texts.user_errors import USER_ERRORS, message_of, reason_of
from sparkstorm.topology.grouping import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    FieldsGrouping,
    Global,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
)

__all__ = ["Copies", "Emissions", "Tasks", "choose_tasks", "tasks_of_one"]

Tasks: TypeAlias = NDArray[np.int32]
"""Task numbers."""

_SECOND_CHOICE = np.uint64(0xA0761D6478BD642F)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Emissions:
    """The tuples that a task emitted to a stream in a batch, as routing sees them.

    Attributes:
        columns: the values by field name.
        count: the number of tuples.
        turn: the start of round-robin; differs by batch and task, so that small batches spread.
        local: for a component, its tasks in the emitter's partition.
        direct: the tasks picked by the emitter, for a direct stream.
    """

    columns: Mapping[str, Column]
    count: int
    turn: int
    local: Mapping[str, Sequence[int]]
    direct: Tasks | None = None


@final
@dataclass(frozen=True, slots=True)
class Copies:
    """The tuples for each task: a row per copy, sorted by task, then by tuple."""

    rows: Indexes
    tasks: Tasks

    def by_task(self) -> list[tuple[int, int, int]]:
        """Return (task, start, stop) for each run of copies to a task."""
        if not len(self.tasks):
            return []
        edges = np.flatnonzero(np.diff(self.tasks)) + 1
        starts = [0, *edges.tolist()]
        stops = [*edges.tolist(), len(self.tasks)]
        return [(int(self.tasks[a]), a, b) for a, b in zip(starts, stops, strict=True)]


def choose_tasks(route: Route, emissions: Emissions) -> Copies:
    """Route all tuples of a stream to a subscriber.

    Raises:
        CoderError: some values cannot be hashed, or a custom grouping failed on them.
    """
    every = np.arange(emissions.count)
    match route.grouping:
        case All():
            tasks = np.repeat(np.array(route.tasks, np.int32), emissions.count)
            return Copies(np.tile(every, len(route.tasks)), tasks)
        case Custom(grouping):
            return _custom(grouping, route, emissions)
        case Direct():
            return _direct(route, emissions)
        case _:
            return _sorted(every, _one_each(route, emissions))


def tasks_of_one(route: Route, stream: Stream, row: Sequence[Any], turn: int) -> list[int] | None:
    """Route one tuple, as :func:`choose_tasks` does, without any array.

    Args:
        route: the way to a subscriber.
        stream: the declaration of the tuple's stream.
        row: the tuple's values.
        turn: the tuple's place in the round-robin.

    Returns:
        the tasks; None if only :func:`choose_tasks` can tell.
    """
    first, count = route.tasks.start, len(route.tasks)
    match route.grouping:
        case FieldsGrouping(fields):
            key = _plain_key(fields, stream, row)
            if key is None:
                return None
            return [first + combine_one([hash_value(value) for value in key]) % count]
        case Shuffle() | NoneGrouping():
            return [first + turn % count]
        case Global():
            return [first]
        case All():
            return [*route.tasks]
        case _:
            return None


def _plain_key(fields: Sequence[str], stream: Stream, row: Sequence[Any]) -> list[Any] | None:
    """Return the values to group by, unless some may change on their way to the subscriber."""
    key = []
    for name in fields:
        index = stream.names.index(name)
        declared, plain = stream.fields[index].type, PLAIN_TYPES.get(type(row[index]))
        if plain is None or (declared is not None and declared != plain):
            return None
        key.append(row[index])
    return key


def _one_each(route: Route, emissions: Emissions) -> Tasks:
    first, count = route.tasks.start, len(route.tasks)
    match route.grouping:
        case PartialKey() | Shuffle() | LocalOrShuffle() | NoneGrouping() if count == 1:
            return np.full(emissions.count, first, np.int32)
        case Global():
            return np.full(emissions.count, first, np.int32)
        case Shuffle() | NoneGrouping():
            return _in_turn(np.array(route.tasks, np.int32), emissions)
        case LocalOrShuffle():
            local = emissions.local.get(route.target) or route.tasks
            return _in_turn(np.array(local, np.int32), emissions)
        case FieldsGrouping(fields):
            hashes = _hashes(fields, emissions)
            return (hashes % np.uint64(count)).astype(np.int32) + np.int32(first)
        case PartialKey(fields):
            return _less_loaded(_hashes(fields, emissions), first, count)
    raise InternalError(f"no rule for the grouping {route.grouping!r}")


def _in_turn(tasks: Tasks, emissions: Emissions) -> Tasks:
    return tasks[(np.arange(emissions.count) + emissions.turn) % len(tasks)]


def _hashes(fields: Sequence[str], emissions: Emissions) -> U64:
    hashed = []
    for field in fields:
        try:
            hashed.append(emissions.columns[field].hashes())
        except CoderError as error:
            raise error.within(f"field {field!r}") from None
    return combine(hashed)


def _less_loaded(hashes: U64, first: int, count: int) -> Tasks:
    """Return for each key the less loaded of two tasks, by the copies sent in this batch.

    Source: Nasir et al.: The Power of Both Choices (ICDE 2015); Storm's PartialKeyGrouping.
    """
    one = (hashes % np.uint64(count)).astype(np.int64)
    step = (mix64(hashes ^ _SECOND_CHOICE) % np.uint64(count - 1)).astype(np.int64) + 1
    two = (one + step) % count
    sent = [0] * count
    chosen = []
    for a, b in zip(one.tolist(), two.tolist(), strict=True):
        pick = a if sent[a] <= sent[b] else b
        sent[pick] += 1
        chosen.append(pick)
    return np.array(chosen, np.int32) + np.int32(first)


def _custom(grouping: CustomGrouping, route: Route, emissions: Emissions) -> Copies:
    rows: list[int] = []
    tasks: list[int] = []
    faults: dict[int, str] = {}
    name = type(grouping).__name__
    for row, values in enumerate(rows_of(emissions.columns.values(), emissions.count)):
        try:
            chosen = list(grouping.choose_tasks(values, list(route.tasks), emissions.turn + row))
            strangers = [reason_of(task) for task in chosen if task not in route.tasks]
        except USER_ERRORS as error:  # the tuple fails, the rest goes on
            faults[row] = f"{name} raised {message_of(error)}"
            continue
        if strangers:
            faults[row] = (
                f"{name} chose task {strangers[0]}, but {route.target!r} has the tasks "
                f"{route.tasks.start} to {route.tasks.stop - 1}"
            )
        rows += [row] * len(chosen)
        tasks += chosen
    if faults:
        # All faults at once: the caller drops these rows and routes the others anew.
        raise CoderError.of(faults)
    return _sorted(np.array(rows, np.int64), np.array(tasks, np.int32))


def _direct(route: Route, emissions: Emissions) -> Copies:
    if emissions.direct is None:
        return Copies(np.empty(0, np.int64), np.empty(0, np.int32))
    mine = (emissions.direct >= route.tasks.start) & (emissions.direct < route.tasks.stop)
    return _sorted(np.flatnonzero(mine), emissions.direct[mine])


def _sorted(rows: Indexes, tasks: Tasks) -> Copies:
    if not len(tasks) or (tasks == tasks[0]).all():
        return Copies(rows, tasks)
    # Of 16 bits, numpy's stable sort is a radix sort: several times faster.
    order = np.argsort((tasks - tasks.min()).astype(np.uint16), kind="stable")
    return Copies(rows[order], tasks[order])
