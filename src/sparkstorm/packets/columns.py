"""Columns of values: how tuples are kept between a component's lists and a packet's bytes."""

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64
from sparkstorm.errors import EmitError
from sparkstorm.packets.fitting import fitting_array, fitting_pieces, joined
from sparkstorm.packets.hashing import hash_array, hash_value, hash_values
from sparkstorm.packets.pickles import NotingPickler
from sparkstorm.streams import Field
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of, words_of

__all__ = [
    "ArrowColumn",
    "CoderError",
    "Column",
    "DictColumn",
    "ObjectColumn",
    "Rows",
    "make_column",
    "pickled",
    "rows_of",
]

Rows: TypeAlias = NDArray[np.int64]

_DICTIONARY_MIN_ROWS = 64
"""Below this many rows a dictionary saves nothing."""

_OBJECT_BYTES = 100
"""A guess for a pickled value; what turns out larger is cut again."""

_EXACT: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}
"""Python types that come back from Arrow as just what they were."""


class CoderError(Exception):
    """Values do not fit their field; ``rows`` are the positions at fault.

    ``faults`` tells why of each of them: the message, unless they have their own.
    """

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = list(rows)
        self.faults = dict.fromkeys(self.rows, message)

    @classmethod
    def of(cls, faults: Mapping[int, str]) -> "CoderError":
        """Return the error for rows that have each their own text; its message is the first."""
        error = cls(next(iter(faults.values())), [*faults])
        error.faults.update(faults)
        return error

    def within(self, place: str) -> "CoderError":
        """Tell of each where it was."""
        return CoderError.of({row: f"{place}: {why}" for row, why in self.faults.items()})


class Column(Protocol):
    """The values of one field of many tuples."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """About how many bytes the values take when encoded."""
        ...

    def take(self, rows: Rows) -> "Column":
        """The values at these positions."""
        ...

    def slice(self, start: int, stop: int) -> "Column":
        """The values from ``start`` to ``stop``."""
        ...

    def to_list(self) -> list[Any]:
        """The values as Python objects."""
        ...

    def hashes(self) -> U64:
        """The canonical hash of each value."""
        ...


@final
class ArrowColumn:
    """Values in an Arrow array."""

    __slots__ = ("array",)

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def nbytes(self) -> int:
        """About how many bytes the values take when encoded."""
        return int(self.array.nbytes)

    def take(self, rows: Rows) -> "ArrowColumn":
        """The values at these positions."""
        return ArrowColumn(self.array.take(pa.array(rows)))

    def slice(self, start: int, stop: int) -> "ArrowColumn":
        """The values from ``start`` to ``stop``."""
        return ArrowColumn(self.array.slice(start, stop - start))

    def to_list(self) -> list[Any]:
        """The values as Python objects."""
        values: list[Any] = self.array.to_pylist()
        kind = self.array.type
        return [_with_dicts(value, kind) for value in values] if _has_map(kind) else values

    def hashes(self) -> U64:
        """The canonical hash of each value."""
        try:
            return hash_array(self.array)
        except EmitError as error:
            raise _without_hash(self.array.to_pylist(), error) from None


@final
class DictColumn:
    """Text with many repeats: each distinct value once, and a number per tuple.

    Hashing and making Python strings then cost as much as there are *distinct* values.
    """

    __slots__ = ("dictionary", "indices")

    def __init__(self, dictionary: pa.Array, indices: NDArray[np.int32]) -> None:
        self.dictionary = dictionary
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """About how many bytes the values take when encoded."""
        return int(self.indices.nbytes)

    def take(self, rows: Rows) -> "DictColumn":
        """The values at these positions."""
        return DictColumn(self.dictionary, self.indices[rows])

    def slice(self, start: int, stop: int) -> "DictColumn":
        """The values from ``start`` to ``stop``."""
        return DictColumn(self.dictionary, self.indices[start:stop])

    def compact(self) -> "DictColumn":
        """Drop the dictionary entries that no tuple uses."""
        used = np.zeros(len(self.dictionary), np.bool_)
        used[self.indices] = True
        if used.all():
            return self
        renumbered = np.cumsum(used, dtype=np.int32) - np.int32(1)
        kept = self.dictionary.filter(pa.array(used))
        return DictColumn(kept, renumbered[self.indices])

    def to_list(self) -> list[Any]:
        """The values as Python objects."""
        values = np.array([*self.dictionary.to_pylist(), None], dtype=object)
        picked: list[Any] = values[self.indices].tolist()
        return picked

    def hashes(self) -> U64:
        """The canonical hash of each value."""
        return hash_array(self.dictionary)[self.indices]


@final
class ObjectColumn:
    """Any values that can be pickled."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """About how many bytes the values take when encoded."""
        return _OBJECT_BYTES * len(self.values)

    def take(self, rows: Rows) -> "ObjectColumn":
        """The values at these positions."""
        return ObjectColumn([self.values[row] for row in rows.tolist()])

    def slice(self, start: int, stop: int) -> "ObjectColumn":
        """The values from ``start`` to ``stop``."""
        return ObjectColumn(self.values[start:stop])

    def to_list(self) -> list[Any]:
        """The values as Python objects."""
        return self.values

    def hashes(self) -> U64:
        """The canonical hash of each value."""
        try:
            return hash_values(self.values)
        except EmitError as error:
            raise _without_hash(self.values, error) from None


def make_column(field: Field, values: list[Any], *, repeats: bool = False) -> Column:
    """Put a field's values into the column that carries them best.

    Args:
        field: the declaration; without a type any value goes.
        values: one per tuple.
        repeats: whether equal values are to be expected (a grouping's key).

    Raises:
        CoderError: some values do not fit the declared type.
    """
    array = _untyped_array(values) if field.type is None else _typed_array(field, values)
    if array is None:
        return ObjectColumn(values)
    if repeats and len(array) >= _DICTIONARY_MIN_ROWS and pa.types.is_string(array.type):
        return _dictionary(array)
    return ArrowColumn(array)


def rows_of(columns: Iterable[Column], count: int) -> Iterator[tuple[Any, ...]]:
    """The tuples of which these are the columns; there may be tuples without any field."""
    values = [column.to_list() for column in columns]
    return zip(*values, strict=True) if values else repeat((), count)


def pickled(values: list[Any]) -> bytes:
    """Pickle the values of an :class:`ObjectColumn`.

    Equal values give equal bytes, also where one run of a task has one object twice and another
    run has two equal ones (text out of a cache, say); so no tuple shares an object with another.
    Only values that contain themselves are pickled in the usual way.

    Raises:
        CoderError: some of them cannot be pickled, or not be read again.
    """
    buffer = io.BytesIO()
    pickler = NotingPickler(buffer)
    pickler.fast = True  # no references to what was written before
    try:
        pickler.dump(values)
    except BaseException as error:  # of any user's __reduce__
        if not is_of_value(error):
            raise
        return _readable(values, _pickled_with_references(values))
    data = buffer.getvalue()
    return data if pickler.is_safe else _readable(values, data)


def _readable(values: list[Any], data: bytes) -> bytes:
    """Return the pickle, after trying it: the reader could not fail one value alone as cheaply."""
    try:
        pickle.loads(data)  # noqa: S301 - our own
    except BaseException as error:  # of any user's __init__
        if not is_of_value(error):
            raise
        rows = _rows_where(lambda value: pickle.loads(pickle.dumps(value)), values)  # noqa: S301
        why = message_of(error)
        raise CoderError(f"a value can be pickled, but not be read again: {why}", rows) from None
    return data


def _pickled_with_references(values: list[Any]) -> bytes:
    try:
        return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # as above
        if not is_of_value(error):
            raise
        raise CoderError(
            f"a value cannot be pickled: {words_of(error)}", _rows_where(pickle.dumps, values)
        ) from None


def _rows_where(fails: Callable[[Any], object], values: Sequence[Any]) -> list[int]:
    """The rows at fault; all of them if no single one is, so that dropping them helps."""
    return list(_faults(fails, values)) or list(range(len(values)))


def _without_hash(values: Sequence[Any], error: EmitError) -> CoderError:
    faults = _faults(hash_value, values)
    return CoderError.of(faults) if faults else CoderError(str(error), range(len(values)))


def _faults(fails: Callable[[Any], object], values: Sequence[Any]) -> dict[int, str]:
    faults = {}
    for row, value in enumerate(values):
        try:
            fails(value)
        except BaseException as error:  # as above
            if not is_of_value(error):
                raise
            faults[row] = words_of(error)
    return faults


def _has_map(kind: pa.DataType) -> bool:
    inner = (kind.field(index).type for index in range(kind.num_fields))
    return pa.types.is_map(kind) or any(map(_has_map, inner))


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """Turn the pairs that Arrow makes of a map into a dict, also inside of other values."""
    if value is None or not _has_map(kind):
        return value
    if pa.types.is_map(kind):
        return {key: _with_dicts(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    return [_with_dicts(one, kind.value_type) for one in value]


def _dictionary(array: pa.Array) -> Column:
    if array.null_count:
        return ArrowColumn(array)
    encoded = array.dictionary_encode()
    if 2 * len(encoded.dictionary) > len(array):
        return ArrowColumn(array)
    return DictColumn(encoded.dictionary, encoded.indices.to_numpy())


def _untyped_array(values: list[Any]) -> pa.Array | None:
    kinds = set(map(type, values))
    kinds.discard(type(None))
    kind = _EXACT.get(kinds.pop()) if len(kinds) == 1 else None
    try:
        return None if kind is None else pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _typed_array(field: Field, values: list[Any]) -> pa.Array:
    try:
        return fitting_array(field.type, values)
    except BaseException as error:  # values of the user's, with any methods
        if not is_of_value(error):
            raise
        pieces = list(fitting_pieces(field.type, values))
    misfits = [start for start, piece in pieces if piece is None]
    if misfits:
        raise _misfits(field, values, misfits)
    array = joined([piece for _, piece in pieces])
    if array is None:
        raise _too_large(field, [start for start, _ in pieces], len(values))
    return array


def _misfits(field: Field, values: list[Any], rows: Sequence[int]) -> CoderError:
    return CoderError.of({row: _misfit(field, values[row]) for row in rows})


def _misfit(field: Field, value: Any) -> str:
    return (
        f"field {field.name!r} is declared {field.type}, but got {shown(value)} "
        f"({type(value).__name__})"
    )


def _too_large(field: Field, starts: Sequence[int], count: int) -> CoderError:
    """The longest piece may stay."""
    first, stop = max(pairwise([*starts, count]), key=lambda span: span[1] - span[0])
    rows = [*range(first), *range(stop, count)]
    return CoderError(f"field {field.name!r} ({field.type}): too large for one array", rows)
