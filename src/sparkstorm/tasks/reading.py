"""The first stage: read what the plan put into a partition, and route it like any task's emits.

Routing is the processing of the root tuple: it "acks" the seed of each root and emits the copies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.acking.anchors import NO_PARENT
from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.acking.ids import U64, seeds
from sparkstorm.acking.lineage import Indexes, Lineage, is_ascending
from sparkstorm.acking.tally import RootIndex, RootRange
from sparkstorm.components.spout import (
    EXPIRED,
    Expired,
    Messages,
    PartitionedSpout,
    Split,
    Unreadable,
)
from sparkstorm.errors import ComponentError, InternalError, SpoutConnectionError
from sparkstorm.metrics import TaskMetrics, skipped_in
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import ArrowColumn, CoderError, Column, make_column
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.streams import Stream
from sparkstorm.tasks.dispatch import Delivery, Dispatcher, MisfitError
from sparkstorm.tasks.level import quiet_gc
from sparkstorm.tasks.pieces import check_count, is_a, located, pieces_of
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.routing import Tasks
from sparkstorm.texts.user_errors import USER_ERRORS, message_of, reason_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["read_loads", "read_rows"]


def read_loads(
    plan: Plan, partition: int, loads: Sequence[Load | SystemPacket], batch: BatchInfo
) -> tuple[list[Delivery], list[Report]]:
    """Read and route everything that a partition has to read."""
    deliveries: list[Delivery] = []
    reports: list[Report] = []
    with quiet_gc():
        for load in loads:
            if isinstance(load, SystemPacket):
                deliveries.append((plan.home(load.target), load.packet))
                continue
            reader = _Reader(plan, partition, load, batch)
            deliveries += reader.run()
            reports.append(reader.report)
    return deliveries, reports


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read, in the form the dispatcher takes (:class:`Emitted`)."""

    key: StreamKey
    stream: Stream
    made: dict[str, Column]
    parents: NDArray[np.int64]
    direct: Tasks | None

    def __len__(self) -> int:
        return len(self.parents)

    def columns(self) -> dict[str, Column]:
        return self.made

    def parents_by_row(self) -> Indexes:
        return self.parents

    def direct_tasks(self) -> Tasks | None:
        return self.direct

    def take(self, rows: NDArray[np.int64]) -> "_Read":
        """Only these rows."""
        columns = {name: column.take(rows) for name, column in self.made.items()}
        direct = None if self.direct is None else self.direct[rows]
        return _Read(self.key, self.stream, columns, self.parents[rows], direct)


class _Reader:
    """Reads one load."""

    def __init__(self, plan: Plan, partition: int, load: Load, batch: BatchInfo) -> None:
        self._plan = plan
        self._load = load
        self._batch = batch
        self._key = StreamKey(load.component, load.stream)
        self._stream = plan.stream(self._key)
        self._dispatcher = Dispatcher(plan, load.task, partition, batch, load.lane)
        self._causes = Causes()
        self.report = Report(load.component, load.task, load.lane)

    def run(self) -> list[Delivery]:
        """Return the packets of the load's tuples; a load that cannot be read fails its roots.

        A split without roots fails the job: else its source would hear ack, once that is committed.
        """
        try:
            columns, positions, misfits = self._columns()
            sent, emitted = self._route(columns, positions, misfits)
            skipped = self._skipped(self._load.count - _distinct(positions) - len(misfits))
        except InternalError:
            raise
        except USER_ERRORS as error:  # the messages fail, the query lives
            return self._fail(error)
        self.report.metrics = TaskMetrics(emitted=emitted, user=skipped)
        return sent

    def _skipped(self, count: int) -> tuple[tuple[str, float], ...]:
        """What is counted if so many positions held no message."""
        if not count:
            return ()
        spout, split, names = self._plan.spec(self._load.component).component, self._load.split, []
        if isinstance(spout, PartitionedSpout) and split is not None:
            partition = spout.partition(split)
            names = [skipped_in(partition)] if partition else []
        return tuple((name, float(count)) for name in ("skipped", *names))

    def _columns(self) -> "_Gathered":
        """The columns, for each row its position among the load's messages, and the misfits."""
        load, names = self._load, self._stream.names
        if load.packet is not None:
            made, unread = Packet.decode(load.packet).read()
            bad = {n: _Misfit(f"field {names[at]!r}: {why}") for n, (at, why) in unread.items()}
            rows = np.delete(np.arange(load.count), [*bad])
            return dict(zip(names, [c.take(rows) for c in made], strict=True)), rows, bad
        spout = self._plan.spec(load.component).component
        if load.split is None or not isinstance(spout, PartitionedSpout):
            raise InternalError(f"a load of {load.component!r} has nothing to read")
        return _gather(spout, load.split, self._stream)

    def _route(
        self,
        columns: dict[str, Column],
        positions: NDArray[np.int64],
        misfits: "dict[int, _Misfit]",
    ) -> tuple[list[Delivery], int]:
        """Send what can be sent; the others fail, each alone."""
        load = self._load
        every = np.concatenate([positions, np.array([*misfits], np.int64)])
        lineage, acked, parents = self._lineage(every)
        bad, parents = parents[len(positions) :], parents[: len(positions)]
        notes = self._misfits(lineage, acked, bad, misfits.values())
        direct = None if load.direct is None else np.frombuffer(load.direct, np.int32)[positions]
        read = _Read(self._key, self._stream, columns, parents, direct)
        kept = np.flatnonzero(parents != _DROPPED)
        if len(kept) < len(parents):
            read = read.take(kept)
        while True:
            try:
                sent = self._dispatcher.dispatch(lineage, acked, [read])
            except MisfitError as misfit:
                bad, whys = read.parents[misfit.rows], map(_Misfit, misfit.faults.values())
                notes += self._misfits(lineage, acked, bad, whys)
                read = read.take(np.delete(np.arange(len(read)), misfit.rows))
            else:
                roots = np.array([root for root, _ in notes], np.uint64)
                failed = FailedRoots.first_of_each(roots, [why for _, why in notes])
                return sent + self._dispatcher.fail(failed), len(read)

    def _misfits(
        self,
        lineage: Lineage,
        acked: NDArray[np.bool_],
        numbers: NDArray[np.int64],
        reasons: "Iterable[_Misfit]",
    ) -> list[tuple[int, Failure]]:
        """Fail the messages that cannot be sent, by their numbers among those that start."""
        notes = []
        for number, why in zip(numbers.tolist(), reasons, strict=True):
            self.report.log("error", f"a message cannot be sent: {why.text}")
            if number >= 0:
                acked[number] = False
                failure = self._failure(why.text, why.reason, final=why.final)
                notes.append((int(lineage.roots[number]), self._causes.share(failure)))
        return notes

    def _lineage(
        self, positions: NDArray[np.int64]
    ) -> tuple[Lineage, NDArray[np.bool_], NDArray[np.int64]]:
        """The roots to start, and for each row the root it is the tuple of.

        A root without a row held no message: it starts without a tuple, and so completes.
        """
        if self._load.first is None or not self._plan.tracked:
            count = len(positions)
            return Lineage.untracked(0), np.empty(0, np.bool_), np.full(count, NO_PARENT)
        roots = np.arange(self._load.count, dtype=np.uint64) + np.uint64(self._load.first)
        excluded = self._batch.is_excluded(roots)
        number = np.cumsum(~excluded) - 1
        number[excluded] = _DROPPED
        started: U64 = roots[~excluded]
        return Lineage(started, seeds(started)), np.ones(len(started), np.bool_), number[positions]

    def _fail(self, error: BaseException) -> list[Delivery]:
        load = self._load
        what = load.split.data if load.split else "messages"
        text = f"cannot read {what}: {message_of(error)}"
        away = isinstance(error, SpoutConnectionError)
        if load.first is None and load.split is not None:
            kind = SpoutConnectionError if away else ComponentError
            raise kind(f"spout {load.component!r} {text}") from error
        failure = replace(self._failure(text), counted=not away)
        self.report.log("error", text)
        if load.first is None:
            return []
        roots = RootIndex([RootRange(load.first, load.count)]).roots()
        return self._dispatcher.fail(FailedRoots.alike(roots, self._causes.share(failure)))

    def _failure(
        self, message: str, reason: Reason = Reason.ERROR, *, final: bool = False
    ) -> Failure:
        load = self._load
        return Failure(
            reason=reason,
            component=load.component,
            task=load.task,
            message=message,
            final=final,
        )


_DROPPED = -2
"""Marks rows of excluded roots."""


class _Misfit(NamedTuple):
    """Why a message cannot be sent."""

    text: str
    reason: Reason = Reason.ERROR
    final: bool = False


_Gathered: TypeAlias = tuple[dict[str, Column], NDArray[np.int64], dict[int, _Misfit]]
"""Columns, the position of each row, and for positions that cannot be sent, why."""

_GONE = _Misfit("the source no longer has the message", Reason.EXPIRED, final=True)


def _gather(spout: PartitionedSpout, split: Split, stream: Stream) -> _Gathered:
    """Read a split; return the columns of the wanted positions, and these numbered from 0."""
    pieces = list(pieces_of(spout, split))
    if pieces and is_a(pieces[0], pa.RecordBatch):
        check_count(split, sum(piece.num_rows for piece in pieces))
        columns, rows, misfits = _from_batches(pieces, stream)
    else:
        columns, rows, misfits = _from_messages(located(split, pieces, stream), stream)
    if split.only is None:
        return columns, rows, misfits
    number = {position: n for n, position in enumerate(split.only)}
    numbers = np.array([number.get(position, -1) for position in rows.tolist()], np.int64)
    picked = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
    return (
        {name: column.take(picked) for name, column in columns.items()},
        numbers[picked],
        {number[position]: why for position, why in misfits.items() if position in number},
    )


Row: TypeAlias = "tuple[Any, ...] | Expired | Unreadable | None"
"""A message's values, or what is the matter with it."""


def read_rows(spout: PartitionedSpout, split: Split, stream: Stream) -> list[Row]:
    """Read a split whose ``only`` is set; return the values of these positions as they are.

    Of a message of several tuples, these are the first one's.
    """
    pieces: list[Any] = list(pieces_of(spout, split))
    if pieces and is_a(pieces[0], pa.RecordBatch):
        columns = _from_batches(pieces, stream)[0].values()
        pieces = list(zip(*(column.to_list() for column in columns), strict=True))
    found: dict[int, Row] = {}
    for piece in located(split, pieces, stream):
        columns_of = [piece.columns[name] for name in stream.names]
        rows = zip(*columns_of, strict=True)
        for position, row in zip(piece.positions, rows, strict=True):
            found.setdefault(position, row)
        found.update(piece.unfit)
    return [found.get(position) for position in split.only or ()]


def _from_batches(batches: Sequence[pa.RecordBatch], stream: Stream) -> _Gathered:
    table = pa.Table.from_batches(batches).combine_chunks()
    columns: dict[str, Column] = {}
    for field in stream.fields:
        chunked = table.column(field.name)
        array = chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type)
        columns[field.name] = ArrowColumn(array.cast(field.type) if field.type else array)
    return columns, np.arange(table.num_rows), {}


def _from_messages(pieces: Sequence[Messages], stream: Stream) -> _Gathered:
    unfit = [item for piece in pieces for item in piece.unfit.items()]
    misfits = {p: _GONE if why is EXPIRED else _broken(why) for p, why in unfit}
    rows = np.fromiter(chain.from_iterable(piece.positions for piece in pieces), np.int64)
    lists = {
        name: list(chain.from_iterable(piece.columns[name] for piece in pieces))
        for name in stream.names
    }
    while True:
        try:
            columns = {field.name: make_column(field, lists[field.name]) for field in stream.fields}
        except CoderError as error:
            misfits.update((int(rows[row]), _Misfit(why)) for row, why in error.faults.items())
            kept = np.flatnonzero(~np.isin(rows, [*misfits]))
            rows = rows[kept]
            lists = {name: [v[row] for row in kept.tolist()] for name, v in lists.items()}
        else:
            return columns, rows, misfits


def _broken(why: object) -> _Misfit:
    return _Misfit(reason_of(why.why if isinstance(why, Unreadable) else why), final=True)


def _distinct(positions: NDArray[np.int64]) -> int:
    """How many different ones there are; usually they ascend, and need no sorting."""
    return len(positions) if is_ascending(positions) else len(np.unique(positions))
