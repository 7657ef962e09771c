"""What a partitioned spout's ``read`` yields, held against what was planned."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sparkstorm.components.spout import Expired, Messages, PartitionedSpout, Split, Unreadable
from sparkstorm.errors import ComponentError
from sparkstorm.streams import Stream
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of

__all__ = ["check_count", "is_a", "located", "pieces_of"]


def located(split: Split, pieces: list[Any], stream: Stream) -> list[Messages]:
    """What was read, each message with its position."""
    if pieces and is_a(pieces[0], Messages):
        most = split.to_read
        for piece in pieces:
            if max(piece.positions, default=-1) >= most:
                raise ComponentError(f"read gave messages behind the {most} that were planned")
        return pieces
    check_count(split, len(pieces))
    checked = [_check_row(row, stream) for row in pieces]
    unfit = {n: row for n, row in enumerate(checked) if isinstance(row, Expired | Unreadable)}
    there = [n for n, row in enumerate(checked) if row is not None and n not in unfit]
    values = list(zip(*(checked[n] for n in there), strict=True)) or [()] * len(stream.names)
    columns = dict(zip(stream.names, values, strict=True))
    return [Messages(positions=there, columns=columns, unfit=unfit)]


def _check_row(row: Any, stream: Stream) -> tuple[Any, ...] | Expired | Unreadable | None:
    """Return a row's values; one that is no row fails alone."""
    if row is None or type(row) in (Expired, Unreadable):
        return row  # type: ignore[no-any-return]
    try:
        values = tuple(row)
    except BaseException as error:  # of any class, with any methods
        if not is_of_value(error):
            raise
        return Unreadable(f"{shown(row)} is no sequence of values: {message_of(error)}")
    if len(values) == len(stream.fields):
        return values
    return Unreadable(f"it has {len(values)} values, not {len(stream.fields)}: {shown(row)}")


def check_count(split: Split, count: int) -> None:
    """A message that was planned and is not there must not pass for one that holds nothing.

    Nor may one that was never planned be left out without a word.
    """
    wanted, most = split.to_read, _most_of(split)
    if not wanted <= count <= (count if most is None else most):
        planned = wanted if count < wanted else most
        more = "" if count < wanted else " or more"
        raise ComponentError(
            f"read gave {count} messages{more} where {planned} were planned: yield None for a "
            f"position that holds none, and nothing behind the last one"
        )


def _most_of(split: Split) -> int | None:
    """How many messages ``read`` may give: all of a split that was narrowed; None if not known."""
    return split.count if split.only is None else split.whole


def pieces_of(spout: PartitionedSpout, split: Split) -> Iterator[Any]:
    """What is read, up to the first message too many: there may be no end of them."""
    count, most = 0, _most_of(split)
    piece: Any
    for piece in spout.read(split):
        yield piece
        if most is not None and not is_a(piece, Messages):
            count += piece.num_rows if is_a(piece, pa.RecordBatch) else 1
            if count > most:
                return


def is_a(piece: Any, kind: type) -> bool:
    """Whether it is of that type; ``isinstance`` would ask the object, which may be a user's."""
    return issubclass(type(piece), kind)
