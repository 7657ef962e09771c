"""Columns of values: the form of tuples between a component's lists and a packet's bytes."""

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
"""With fewer rows a dictionary saves nothing."""

_OBJECT_BYTES = 100
"""A guess for a pickled value; larger bodies are cut again."""

PLAIN_TYPES: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}
"""Python types whose values come back from Arrow unchanged."""


class CoderError(Exception):
    """Values that do not fit their field; ``rows`` are their positions.

    ``faults`` has the reason for each row: the message, unless the row has its own.
    """

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = list(rows)
        self.faults = dict.fromkeys(self.rows, message)

    @classmethod
    def of(cls, faults: Mapping[int, str]) -> "CoderError":
        """Return the error for rows with a text each; the first text is the error's message."""
        error = cls(next(iter(faults.values())), [*faults])
        error.faults.update(faults)
        return error

    def within(self, place: str) -> "CoderError":
        """Return the error with the place put before each reason."""
        return CoderError.of({row: f"{place}: {why}" for row, why in self.faults.items()})


class Column(Protocol):
    """The values of a field of many tuples."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """The approximate size of the encoded values, in bytes."""
        ...

    def take(self, rows: Rows) -> "Column":
        """Return the values at these positions."""
        ...

    def slice(self, start: int, stop: int) -> "Column":
        """Return the values from ``start`` up to ``stop``."""
        ...

    def to_list(self) -> list[Any]:
        """Return the values as Python objects."""
        ...

    def hashes(self) -> U64:
        """Return the canonical hash of each value."""
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
        """The approximate size of the encoded values, in bytes."""
        return int(self.array.nbytes)

    def take(self, rows: Rows) -> "ArrowColumn":
        """Return the values at these positions."""
        return ArrowColumn(self.array.take(pa.array(rows)))

    def slice(self, start: int, stop: int) -> "ArrowColumn":
        """Return the values from ``start`` up to ``stop``."""
        return ArrowColumn(self.array.slice(start, stop - start))

    def to_list(self) -> list[Any]:
        """Return the values as Python objects."""
        values: list[Any] = self.array.to_pylist()
        kind = self.array.type
        return [_with_dicts(value, kind) for value in values] if _has_map(kind) else values

    def hashes(self) -> U64:
        """Return the canonical hash of each value."""
        try:
            return hash_array(self.array)
        except EmitError as error:
            raise _without_hash(self.array.to_pylist(), error) from None


@final
class DictColumn:
    """Text with many repeats: each distinct value once, and a number per tuple.

    The cost of hashing, and of making Python strings, grows with the *distinct* values alone.
    """

    __slots__ = ("dictionary", "indices")

    def __init__(self, dictionary: pa.Array, indices: NDArray[np.int32]) -> None:
        self.dictionary = dictionary
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """The approximate size of the encoded values, in bytes."""
        return int(self.indices.nbytes)

    def take(self, rows: Rows) -> "DictColumn":
        """Return the values at these positions."""
        return DictColumn(self.dictionary, self.indices[rows])

    def slice(self, start: int, stop: int) -> "DictColumn":
        """Return the values from ``start`` up to ``stop``."""
        return DictColumn(self.dictionary, self.indices[start:stop])

    def compact(self) -> "DictColumn":
        """Return the column without unused dictionary entries."""
        used = np.zeros(len(self.dictionary), np.bool_)
        used[self.indices] = True
        if used.all():
            return self
        renumbered = np.cumsum(used, dtype=np.int32) - np.int32(1)
        kept = self.dictionary.filter(pa.array(used))
        return DictColumn(kept, renumbered[self.indices])

    def to_list(self) -> list[Any]:
        """Return the values as Python objects."""
        # The None keeps numpy from making an array of strings, or of several dimensions.
        values = np.array([*self.dictionary.to_pylist(), None], dtype=object)
        picked: list[Any] = values[self.indices].tolist()
        return picked

    def hashes(self) -> U64:
        """Return the canonical hash of each value."""
        return hash_array(self.dictionary)[self.indices]


@final
class ObjectColumn:
    """Arbitrary picklable values."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The approximate size of the encoded values, in bytes."""
        return _OBJECT_BYTES * len(self.values)

    def take(self, rows: Rows) -> "ObjectColumn":
        """Return the values at these positions."""
        return ObjectColumn([self.values[row] for row in rows.tolist()])

    def slice(self, start: int, stop: int) -> "ObjectColumn":
        """Return the values from ``start`` up to ``stop``."""
        return ObjectColumn(self.values[start:stop])

    def to_list(self) -> list[Any]:
        """Return the values as Python objects."""
        return self.values

    def hashes(self) -> U64:
        """Return the canonical hash of each value."""
        try:
            return hash_values(self.values)
        except EmitError as error:
            raise _without_hash(self.values, error) from None


def make_column(field: Field, values: list[Any], *, repeats: bool = False) -> Column:
    """Put a field's values into the cheapest column that keeps them.

    Args:
        field: the declaration; a field without a type takes any value.
        values: a value per tuple.
        repeats: whether to expect equal values (a grouping's key).

    Raises:
        CoderError: some values do not fit the declared type.
    """
    # Arrow carries uniform built-in values without a declared type, too: quicker than pickles.
    array = _untyped_array(values) if field.type is None else _typed_array(field, values)
    if array is None:
        return ObjectColumn(values)
    # Only keys of a grouping repeat often; for others the count of distinct values would be wasted.
    if repeats and len(array) >= _DICTIONARY_MIN_ROWS and pa.types.is_string(array.type):
        return _dictionary(array)
    return ArrowColumn(array)


def rows_of(columns: Iterable[Column], count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the tuples of these columns; tuples may have no field."""
    values = [column.to_list() for column in columns]
    return zip(*values, strict=True) if values else repeat((), count)


def pickled(values: list[Any]) -> bytes:
    """Pickle the values of an :class:`ObjectColumn`.

    Equal values give equal bytes, even if a run of a task has the same object twice where another
    run has two equal objects (text out of a cache, say). So no tuple shares an object with another.
    Only values that contain themselves are pickled in the usual way.

    Raises:
        CoderError: some values cannot be pickled, or not be read again.
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
    """Return the pickle after a trial: a bad value can fail alone here, at less cost than later."""
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
    """Return the rows at fault; all rows if no single row is, so that dropping them helps."""
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
    """Turn Arrow's pairs of a map into a dict, also inside of other values."""
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
    # With few repeats the numbers cost more than the dictionary saves.
    if 2 * len(encoded.dictionary) > len(array):
        return ArrowColumn(array)
    return DictColumn(encoded.dictionary, encoded.indices.to_numpy())


def _untyped_array(values: list[Any]) -> pa.Array | None:
    kinds = set(map(type, values))
    kinds.discard(type(None))
    kind = PLAIN_TYPES.get(kinds.pop()) if len(kinds) == 1 else None
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
    """Return the error for values too large for an array; the longest piece may stay."""
    first, stop = max(pairwise([*starts, count]), key=lambda span: span[1] - span[0])
    rows = [*range(first), *range(stop, count)]
    return CoderError(f"field {field.name!r} ({field.type}): too large for one array", rows)
