"""Dispatch: from a task's outboxes to packets: encode, route, work out the shares, address.

Tuples get their lineage here and nowhere else. In the order of :meth:`Dispatcher.dispatch`:

1. anchor: find the roots of tuples with many anchors, once for all tuples with the same anchors;
2. draft: encode each stream's columns and route them: bodies of a bounded size for each task;
3. token: digest all drafts, so that ids derive from the emits (see ``child_ids``);
4. settle: give each copy its share, and the ackers the contributions that no child carries;
5. address: each packet to the partition of its task, behind the groves that the packet names.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.anchors import MANY_ROOTS, Anchors
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.groves import Groves, Pieces
from sparkstorm.acking.ids import U64
from sparkstorm.acking.lineage import Indexes, Lineage
from sparkstorm.acking.shares import Entries, Settlement, settle
from sparkstorm.metrics import OutputMetrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import CoderError, Column
from sparkstorm.packets.packet import DRIVER, Body, Kind, PacketWriter
from sparkstorm.planning.plan import Plan, Route
from sparkstorm.tasks.collectors.outbox import Emitted
from sparkstorm.tasks.receivers import turn_of
from sparkstorm.tasks.routing import Emissions, Tasks, choose_tasks
from sparkstorm.tasks.tracing import Traced, trace_children

__all__ = ["Delivery", "Dispatcher", "MisfitError"]

Delivery: TypeAlias = tuple[int, bytes]
"""The partition that a packet goes to, and the packet."""

_PACKET_BYTES = 400 * 1024
"""The approximate size of a packet.

Larger packets would be humongous objects for the JVM's G1 collector (half a region, which is 1 MB
in a small heap). Collecting these costs more than all the rest: measured 1.5 s of CPU per batch
with packets of 6 MB.
"""

_PAIR_BYTES = 16
"""The most bytes of a root and a share."""

_ROOT_BYTES, _PIECE_BYTES = 2, 24
"""The bytes of a grove's root, as a distance from the root before, and of each new piece."""

_FAR = np.uint64(1 << 8 * _ROOT_BYTES)


class MisfitError(Exception):
    """Emitted values that cannot be sent: their outbox, their rows, and a reason for each row."""

    def __init__(self, box: Emitted, error: CoderError) -> None:
        super().__init__(str(error))
        self.box = box
        self.rows = error.rows
        self.faults = error.faults


@final
@dataclass(frozen=True, slots=True)
class _Draft:
    """Copies of a stream's tuples for a task, still without lineage."""

    stream: int
    target: int
    body: Body
    parents: Indexes


@final
class Dispatcher:
    """Sends a task's emits, acks and failures; each batch has a new dispatcher.

    Attributes:
        outputs: the emitted and transferred tuples of the last :meth:`dispatch`, by stream.
        traces: the emitted tuples of traced roots.
    """

    def __init__(self, plan: Plan, task: int, partition: int, batch: BatchInfo, lane: int = 0):
        self._plan = plan
        self._task = task
        self._partition = partition
        self._batch = batch
        self._writer = PacketWriter(task, sequence=lane << 20)
        self.outputs: dict[str, OutputMetrics] = {}
        self.traces: list[Traced] = []

    def dispatch(
        self,
        inputs: Lineage,
        acked: NDArray[np.bool_],
        boxes: Iterable[Emitted],
        anchor_lists: Sequence[Sequence[int]] = (),
        groves: Groves | None = None,
    ) -> list[Delivery]:
        """Turn all emits, and the acks, into packets.

        Args:
            inputs: the lineage of the task's inputs.
            acked: marks the inputs that the task acked.
            boxes: the emitted tuples by stream.
            anchor_lists: the inputs of tuples with several anchors, by the number of the list.
            groves: the groves of the inputs; the call adds new ones.

        Raises:
            MisfitError: some values cannot be encoded or routed; nothing was sent. Drop the rows,
                fail their parents, and call again.
        """
        groves = Groves() if groves is None else groves
        anchors = Anchors.resolve(inputs, anchor_lists, groves, MANY_ROOTS)
        # Empty boxes have nothing to route, and columns without a row have no type.
        filled = [box for box in boxes if len(box)]
        drafts = [draft for box in filled for draft in self._drafts(box, anchors)]
        self.outputs = self._counted(filled, drafts)
        settlement = self._settle(anchors, acked, drafts)
        self.traces = self._traces(drafts, anchors, settlement.children)
        return [
            *self._groves(drafts, settlement.children, groves),
            *self._tracings(drafts, settlement.children),
            *self._data(drafts, settlement.children),
            *self._entries(groves.expand(settlement.entries)),
        ]

    def hold(self, kind: Kind, roots: U64) -> list[Delivery]:
        """Tell the ackers about held roots, or roots whose time-out starts anew."""
        # A root of several held tuples is told once.
        each, step = np.unique(roots), _PACKET_BYTES // roots.itemsize
        return [
            (home, self._writer.roots(kind, target, piece))
            for home, target, mine in self._split(each)
            for piece in np.split(each[mine], range(step, np.count_nonzero(mine), step))
        ]

    def fail(self, failed: FailedRoots) -> list[Delivery]:
        """Tell the ackers about failed roots."""
        deliveries = []
        step = _PACKET_BYTES // _PAIR_BYTES
        for home, target, marks in self._split(failed.roots):
            mine = failed.select(marks)
            for start in range(0, len(mine), step):
                packet = self._writer.notes(target, mine.slice(start, start + step))
                deliveries.append((home, packet))
        return deliveries

    def fatal(self, payload: bytes) -> list[Delivery]:
        """Tell the driver about a fault that must stop the topology."""
        return [(self._partition, self._writer.for_driver(Kind.FATAL, [payload]))]

    def _drafts(self, box: Emitted, anchors: Anchors) -> Iterator[_Draft]:
        try:
            columns, parents = box.columns(), box.parents_by_row()
            pairs = anchors.pairs(parents)
            stream = self._plan.stream_number[box.key]
            routes, direct = self._plan.routes[box.key], box.direct_tasks()
            # A tuple that no route takes would vanish, and its tree look complete.
            if routes and direct is not None:
                _check_direct(routes, direct)
            for route in routes:
                copies = choose_tasks(route, self._emissions(box, columns))
                for target, start, stop in copies.by_task():
                    rows = copies.rows[start:stop]
                    for part, body in _cut(columns, rows, pairs):
                        yield _Draft(stream, target, body, parents[part])
            if box.key in self._plan.to_driver:
                for part, body in _cut(columns, np.arange(len(box)), None):
                    yield _Draft(stream, DRIVER, body, parents[part])
        except CoderError as error:
            raise MisfitError(box, error.within(f"stream {str(box.key)!r}")) from error

    def _counted(
        self, boxes: Iterable[Emitted], drafts: Iterable[_Draft]
    ) -> dict[str, OutputMetrics]:
        copies: Counter[int] = Counter()
        for draft in drafts:
            if draft.target != DRIVER:
                copies[draft.stream] += draft.body.count
        numbers = self._plan.stream_number
        return {
            box.key.stream: OutputMetrics(emitted=len(box), transferred=copies[numbers[box.key]])
            for box in boxes
        }

    def _traces(
        self, drafts: Sequence[_Draft], anchors: Anchors, children: Lineage
    ) -> list[Traced]:
        targets = [(one.stream, one.target, one.parents) for one in drafts if one.target != DRIVER]
        return trace_children(self._plan, self._batch, self._task, anchors, children, targets)

    def _emissions(self, box: Emitted, columns: Mapping[str, Column]) -> Emissions:
        local = {
            route.target: self._plan.local_tasks(route.target, self._partition)
            for route in self._plan.routes[box.key]
        }
        return Emissions(
            columns=columns,
            count=len(box),
            turn=turn_of(self._batch, self._task),
            local=local,
            direct=box.direct_tasks(),
        )

    def _settle(
        self, anchors: Anchors, acked: NDArray[np.bool_], drafts: Sequence[_Draft]
    ) -> Settlement:
        parents = [draft.parents for draft in drafts if draft.target != DRIVER]
        copies = sum(map(len, parents))
        inputs = anchors.inputs
        if not self._plan.tracked or not inputs.is_tracked:
            return Settlement(Lineage.untracked(copies), Entries.none())
        child, anchor = anchors.of(np.concatenate([_NONE, *parents]))
        token = self._token(drafts, inputs, anchor)
        # The stand-ins of long lists are inputs that nobody acked.
        acked = np.concatenate([acked, np.zeros(len(inputs) - len(acked), np.bool_)])
        return settle(inputs, acked, child, anchor, copies, token)

    def _token(self, drafts: Sequence[_Draft], inputs: Lineage, anchor: Indexes) -> int:
        digest = hashlib.sha256()  # processors have instructions for it: twice as fast as others
        # The lane is in the sequence: two loads of a task with equal messages need different ids.
        digest.update(f"{self._batch.number} {self._task} {self._writer.sequence}".encode())
        for draft in drafts:
            digest.update(f"{draft.stream} {draft.target} {draft.body.count}".encode())
            for part in draft.body.parts:
                digest.update(part)
        digest.update(inputs.roots[inputs.pairs_of(anchor)[1]].data)
        return int.from_bytes(digest.digest()[:8], "little")

    def _groves(
        self, drafts: Sequence[_Draft], children: Lineage, groves: Groves
    ) -> Iterator[Delivery]:
        """Tell each task once about the groves of its tuples."""
        if not len(groves):
            return
        named: dict[int, list[U64]] = {}
        start = 0
        for draft in drafts:
            if draft.target != DRIVER:
                stop = start + draft.body.count
                named.setdefault(draft.target, []).append(children.slice(start, stop).roots)
                start = stop
        for target, roots in named.items():
            for pieces in _cut_groves(groves.pieces_of(np.concatenate(roots))):
                yield self._plan.home(target), self._writer.groves(target, pieces)

    def trace(self, roots: U64) -> None:
        """Trace more roots: ascending."""
        self._batch = self._batch.tracing(roots)

    def _tracings(self, drafts: Sequence[_Draft], children: Lineage) -> Iterator[Delivery]:
        """Tell tasks which roots to trace, if readers have found some by their payload."""
        if not self._batch.followed:
            return
        found: dict[int, list[U64]] = {}
        start = 0
        for draft in drafts:
            if draft.target != DRIVER:
                stop = start + draft.body.count
                roots = children.slice(start, stop).roots
                traced = self._batch.traced_of(roots)
                if len(traced):
                    found.setdefault(draft.target, []).append(traced)
                start = stop
        for target, parts in found.items():
            roots = np.unique(np.concatenate(parts))
            yield self._plan.home(target), self._writer.roots(Kind.TRACED, target, roots)

    def _data(self, drafts: Sequence[_Draft], children: Lineage) -> Iterator[Delivery]:
        start = 0
        for draft in drafts:
            count = draft.body.count
            if draft.target == DRIVER:
                home, lineage = self._partition, Lineage.untracked(count)
            else:
                home, lineage = self._plan.home(draft.target), children.slice(start, start + count)
                start += count
            yield (
                home,
                self._writer.data(
                    stream=draft.stream, target=draft.target, body=draft.body, lineage=lineage
                ),
            )

    def _entries(self, entries: Entries) -> Iterator[Delivery]:
        step = _PACKET_BYTES // _PAIR_BYTES
        for home, target, mine in self._split(entries.roots):
            roots, deltas = entries.roots[mine], entries.deltas[mine]
            for start in range(0, len(roots), step):
                piece = Entries(roots[start : start + step], deltas[start : start + step])
                yield home, self._writer.entries(target, piece)

    def _split(self, roots: U64) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
        """Sort roots to their ackers: yield (partition, acker task, marks)."""
        ackers = self._plan.ackers
        if not len(ackers) or not len(roots):
            return
        owner = roots % np.uint64(len(ackers))
        for acker, target in enumerate(ackers):
            mine = owner == acker
            if mine.any():
                yield self._plan.home(target), target, mine


_NONE = np.empty(0, np.int64)


def _check_direct(routes: Sequence[Route], direct: Tasks) -> None:
    """Refuse a tuple for a task that does not read the stream; nobody would miss the tuple."""
    readers = sorted(task for route in routes for task in route.tasks)
    strangers = np.flatnonzero(~np.isin(direct, readers)).tolist()
    if strangers:
        but = f"but the stream's readers are the tasks {', '.join(map(str, readers))}"
        raise CoderError.of({row: f"emit_direct to task {direct[row]}, {but}" for row in strangers})


def _cut(
    columns: Mapping[str, Column], rows: Indexes, pairs: Indexes | None
) -> Iterator[tuple[Indexes, Body]]:
    """Encode these rows, in as many bodies as their size and lineage need.

    Args:
        columns: the values of all rows.
        rows: the rows to encode.
        pairs: the number of pairs of each of all rows; None for one each.
    """
    total = max((len(column) for column in columns.values()), default=1)
    row_bytes = sum(column.nbytes for column in columns.values()) / total
    if pairs is None:
        step = max(1, int(_PACKET_BYTES / (row_bytes + _PAIR_BYTES)))
        starts = [*range(0, len(rows), step), len(rows)]
    else:
        starts = _starts(row_bytes + _PAIR_BYTES * pairs[rows])
    for start, stop in pairwise(starts):
        yield from _encode(columns, rows[start:stop])


def _starts(sizes: NDArray[np.floating[Any]]) -> list[int]:
    """Return the cuts of pieces with these sizes: the starts, and the end of the last piece."""
    ends = np.cumsum(sizes)
    starts, done = [0], 0.0
    while starts[-1] < len(sizes):
        stop = int(np.searchsorted(ends, done + _PACKET_BYTES, side="right"))
        starts.append(max(stop, starts[-1] + 1))
        done = float(ends[starts[-1] - 1])
    return starts


def _cut_groves(pieces: Pieces | None) -> Iterator[Pieces]:
    """Cut pieces of groves at gaps between roots, and to the size of a packet."""
    if pieces is None:
        return
    roots = pieces.roots
    begins = np.zeros(len(roots), np.bool_)
    begins[np.cumsum(pieces.counts) - pieces.counts] = True
    begins[1:] |= roots[1:] - roots[:-1] >= _FAR  # unsigned: so is a step back
    edges = _starts(np.where(begins, float(_PIECE_BYTES), float(_ROOT_BYTES)))
    begins[edges[:-1]] = True
    owners = np.repeat(pieces.ids, pieces.counts)
    for start, stop in pairwise(edges):
        heads = start + np.flatnonzero(begins[start:stop])
        yield Pieces(owners[heads], np.diff(heads, append=stop), roots[start:stop])


def _encode(columns: Mapping[str, Column], rows: Indexes) -> Iterator[tuple[Indexes, Body]]:
    picked = {name: _pick(column, rows) for name, column in columns.items()}
    try:
        body = Body.of_fields(picked, len(rows))
    except CoderError as error:
        raise CoderError.of({int(rows[row]): why for row, why in error.faults.items()}) from None
    # The sizes were guesses, for pickled values a wild one; so the encoded body decides.
    if body.nbytes <= 2 * _PACKET_BYTES or len(rows) == 1:
        yield rows, body
        return
    middle = len(rows) // 2
    yield from _encode(columns, rows[:middle])
    yield from _encode(columns, rows[middle:])


def _pick(column: Column, rows: Indexes) -> Column:
    """Return the values of these rows; a slice, without a copy, if they are consecutive."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
        return column if len(rows) == len(column) else column.slice(first, last + 1)
    return column.take(rows)
