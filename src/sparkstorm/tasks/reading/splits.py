"""The reading of a split: a partitioned spout's ``read``, held against the plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.components.spout import (
    EXPIRED,
    Expired,
    Messages,
    PartitionedSpout,
    Split,
    Unreadable,
)
from sparkstorm.errors import ComponentError, EmitError
from sparkstorm.packets.columns import (
    ArrowColumn,
    CoderError,
    Column,
    ObjectColumn,
    make_column,
)
from sparkstorm.packets.fitting import joined
from sparkstorm.streams import DEFAULT_STREAM, Field, Stream, values_of
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of, reason_of
from sparkstorm.verdicts import Reason

__all__ = ["Gathered", "Misfit", "Row", "read_rows", "read_split"]


class Misfit(NamedTuple):
    """The reason why a message cannot be sent."""

    text: str
    reason: Reason = Reason.ERROR
    final: bool = False


Gathered: TypeAlias = tuple[dict[str, Column], NDArray[np.int64], dict[int, Misfit]]
"""Columns, the position of each row, and the misfits by position."""


class _Encoded(NamedTuple):
    """A piece of messages, with arrays for the fields whose values fit their types."""

    rows: NDArray[np.int64]
    columns: dict[str, Column]
    unfit: Mapping[int, Expired | Unreadable]


_NO_ROWS = np.empty(0, np.int64)

_GONE = Misfit("the source no longer has the message", Reason.EXPIRED, final=True)


def read_split(spout: PartitionedSpout, split: Split, stream: Stream) -> Gathered:
    """Read a split; return the columns of the wanted positions, numbered from 0."""
    others = _pieces_of(spout, split)
    first = list(islice(others, 1))
    pieces = chain(first, others)
    if first and _is_a(first[0], pa.RecordBatch):
        batches = list(pieces)
        _check_count(split, sum(batch.num_rows for batch in batches))
        columns, rows, misfits = _from_batches(batches, stream)
    else:
        located = _located(split, pieces, stream)
        columns, rows, misfits = _from_messages([_encoded(one, stream) for one in located], stream)
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
"""A message's values, or the reason for their absence."""


def read_rows(spout: PartitionedSpout, split: Split, stream: Stream) -> list[Row]:
    """Read a split whose ``only`` is set; return the unchanged values of these positions.

    A message of several tuples counts with its first tuple.
    """
    pieces: list[Any] = list(_pieces_of(spout, split))
    if pieces and _is_a(pieces[0], pa.RecordBatch):
        columns = _from_batches(pieces, stream)[0].values()
        pieces = list(zip(*(column.to_list() for column in columns), strict=True))
    found: dict[int, Row] = {}
    for piece in _located(split, pieces, stream):
        columns_of = [piece.columns[name] for name in stream.names]
        rows = zip(*columns_of, strict=True)
        for position, row in zip(piece.positions, rows, strict=True):
            # A message of several tuples shows its first one.
            found.setdefault(position, row)
        found.update(piece.unfit)
    return [found.get(position) for position in split.only or ()]


def _from_batches(batches: Sequence[pa.RecordBatch], stream: Stream) -> Gathered:
    table = pa.Table.from_batches(batches).combine_chunks()
    columns: dict[str, Column] = {}
    for field in stream.fields:
        chunked = table.column(field.name)
        array = chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type)
        # A cast of Arrow refuses what does not fit, so the values need no check of their own.
        columns[field.name] = ArrowColumn(array.cast(field.type) if field.type else array)
    return columns, np.arange(table.num_rows), {}


def _encoded(piece: Messages, stream: Stream) -> _Encoded:
    """Encode the typed fields of messages that have just been read.

    Their objects are still in the processor's caches, and free their memory for the next ones. A
    field with a value that does not fit waits for :func:`_from_messages`.
    """
    columns: dict[str, Column] = {}
    for field in stream.fields:
        values = list(piece.columns[field.name])
        columns[field.name] = ObjectColumn(values)
        if field.type is not None:
            with suppress(CoderError):
                columns[field.name] = make_column(field, values)
    return _Encoded(np.fromiter(piece.positions, np.int64), columns, piece.unfit)


def _from_messages(pieces: Sequence[_Encoded], stream: Stream) -> Gathered:
    unfit = [item for piece in pieces for item in piece.unfit.items()]
    misfits = {p: _GONE if why is EXPIRED else _broken(why) for p, why in unfit}
    rows = np.concatenate([_NO_ROWS, *(piece.rows for piece in pieces)])
    read = {name: _joined([piece.columns[name] for piece in pieces]) for name in stream.names}
    while True:
        try:
            columns = {field.name: _fitted(field, read[field.name]) for field in stream.fields}
        except CoderError as error:
            misfits.update(
                (int(rows[row]), Misfit(why, final=True)) for row, why in error.faults.items()
            )
            kept = np.flatnonzero(~np.isin(rows, [*misfits]))
            rows = rows[kept]
            read = {name: column.take(kept) for name, column in read.items()}
        else:
            return columns, rows, misfits


def _joined(columns: Sequence[Column]) -> Column:
    """Put the columns of all pieces together; in an array if each piece has one."""
    arrays = [column.array for column in columns if isinstance(column, ArrowColumn)]
    whole = joined(arrays) if columns and len(arrays) == len(columns) else None
    if whole is not None:
        return ArrowColumn(whole)
    return ObjectColumn(list(chain.from_iterable(column.to_list() for column in columns)))


def _fitted(field: Field, column: Column) -> Column:
    return column if isinstance(column, ArrowColumn) else make_column(field, column.to_list())


def _broken(why: object) -> Misfit:
    return Misfit(reason_of(why.why if isinstance(why, Unreadable) else why), final=True)


def _located(split: Split, pieces: Iterable[Any], stream: Stream) -> Iterator[Messages]:
    """Yield the messages read, each with its position."""
    rows, has_positions = [], False
    for piece in pieces:
        if not _is_a(piece, Messages):
            rows.append(piece)
            continue
        has_positions = True
        if max(piece.positions, default=-1) >= split.to_read:
            most = split.to_read
            raise ComponentError(f"read gave messages behind the {most} that were planned")
        yield piece
    if rows or not has_positions:
        yield _numbered(split, rows, stream)


def _numbered(split: Split, rows: Sequence[Any], stream: Stream) -> Messages:
    """Number rows that came without positions."""
    _check_count(split, len(rows))
    checked = [_check_row(row, stream) for row in rows]
    unfit = {n: row for n, row in enumerate(checked) if isinstance(row, Expired | Unreadable)}
    there = [n for n, row in enumerate(checked) if row is not None and n not in unfit]
    values = list(zip(*(checked[n] for n in there), strict=True)) or [()] * len(stream.names)
    columns = dict(zip(stream.names, values, strict=True))
    return Messages(positions=there, columns=columns, unfit=unfit)


def _check_row(row: Any, stream: Stream) -> tuple[Any, ...] | Expired | Unreadable | None:
    """Return a row's values; a value that is no row fails alone."""
    if row is None or type(row) in (Expired, Unreadable):
        return row  # type: ignore[no-any-return]
    try:
        # Almost all rows are of these types, and need no closer look.
        is_plain = type(row) in (list, tuple)
        values = tuple(row if is_plain else values_of(row, stream.names, DEFAULT_STREAM))
    except EmitError as error:
        return Unreadable(str(error))
    except BaseException as error:  # of any class, with any methods
        if not is_of_value(error):
            raise
        return Unreadable(f"{shown(row)} is no sequence of values: {message_of(error)}")
    if len(values) == len(stream.fields):
        return values
    return Unreadable(f"it has {len(values)} values, not {len(stream.fields)}: {shown(row)}")


def _check_count(split: Split, count: int) -> None:
    """Refuse a missing message, which must not pass for an empty position, or one too many."""
    wanted, most = split.to_read, _most_of(split)
    if not wanted <= count <= (count if most is None else most):
        planned = wanted if count < wanted else most
        more = "" if count < wanted else " or more"
        raise ComponentError(
            f"read gave {count} messages{more} where {planned} were planned: yield None for a "
            f"position that holds none, and nothing behind the last one"
        )


def _most_of(split: Split) -> int | None:
    """Return the most messages of ``read``: all of a narrowed split's whole; None if unknown."""
    return split.count if split.only is None else split.whole


def _pieces_of(spout: PartitionedSpout, split: Split) -> Iterator[Any]:
    """Yield ``read``'s pieces up to the first message too many: there may be no end of them."""
    count, most = 0, _most_of(split)
    piece: Any
    for piece in spout.read(split):
        yield piece
        if most is not None and not _is_a(piece, Messages):
            count += piece.num_rows if _is_a(piece, pa.RecordBatch) else 1
            if count > most:
                return


def _is_a(piece: Any, kind: type) -> bool:
    """Whether a piece is of a type; ``isinstance`` would ask the object, which may be a user's."""
    return issubclass(type(piece), kind)
