"""Columns of values: how tuples are kept between a component's lists and a packet's bytes."""

import datetime
import io
import math
import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64
from sparkstorm.errors import EmitError
from sparkstorm.execution.hashing import hash_array, hash_value, hash_values
from sparkstorm.execution.pickles import NotingPickler
from sparkstorm.streams import Field

__all__ = [
    "ArrowColumn",
    "CoderError",
    "Column",
    "DictColumn",
    "ObjectColumn",
    "Rows",
    "make_column",
    "pickled",
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

_MOMENTS = (datetime.datetime, np.datetime64)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


class CoderError(Exception):
    """Values do not fit their field; ``rows`` are the positions at fault."""

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = list(rows)


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
            raise CoderError(str(error), _rows_where(hash_value, self.array.to_pylist())) from None


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
            raise CoderError(str(error), _rows_where(hash_value, self.values)) from None


def make_column(field: Field, values: list[Any], *, repeats: bool = False) -> Column:
    """Put a field's values into the column that carries them best.

    Args:
        field: the declaration; without a type any value goes.
        values: one per tuple.
        repeats: whether equal values are to be expected (a grouping's key).

    Raises:
        CoderError: some values do not fit the declared type.
    """
    kind = field.type if field.type is not None else _common_type(values)
    if kind is None:
        return ObjectColumn(values)
    try:
        array = pa.array(values, kind)
        if field.type is not None and not _keeps(kind, values):
            raise ValueError("some values would be cut")
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if field.type is None:
            return ObjectColumn(values)
        raise _explain(field, values, error) from None
    if repeats and len(array) >= _DICTIONARY_MIN_ROWS and pa.types.is_string(kind):
        return _dictionary(array)
    return ArrowColumn(array)


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
    except Exception:  # noqa: BLE001 - any error of any user's __reduce__
        return _readable(values, _pickled_with_references(values))
    data = buffer.getvalue()
    return data if pickler.is_safe else _readable(values, data)


def _readable(values: list[Any], data: bytes) -> bytes:
    """Return the pickle, after trying it: the reader could not fail one value alone as cheaply."""
    try:
        pickle.loads(data)  # noqa: S301 - our own
    except Exception as error:  # noqa: BLE001 - any error of any user's __init__
        rows = _rows_where(lambda value: pickle.loads(pickle.dumps(value)), values)  # noqa: S301
        why = f"{type(error).__name__}: {error}"
        raise CoderError(f"a value can be pickled, but not be read again: {why}", rows) from None
    return data


def _pickled_with_references(values: list[Any]) -> bytes:
    try:
        return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - as above
        raise CoderError(
            f"a value cannot be pickled: {error}", _rows_where(pickle.dumps, values)
        ) from None


def _rows_where(fails: Callable[[Any], object], values: Iterable[Any]) -> list[int]:
    """The rows at fault; all of them if no single one is, so that dropping them helps."""
    rows, count = [], 0
    for row, value in enumerate(values):
        count += 1
        try:
            fails(value)
        except Exception:  # noqa: BLE001 - as above
            rows.append(row)
    return rows or list(range(count))


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


def _common_type(values: list[Any]) -> pa.DataType | None:
    kinds = set(map(type, values))
    kinds.discard(type(None))
    return _EXACT.get(kinds.pop()) if len(kinds) == 1 else None


def _explain(field: Field, values: list[Any], error: Exception) -> CoderError:
    rows = [row for row, value in enumerate(values) if not _fits(field, value)]
    if not rows:
        return CoderError(f"field {field.name!r} ({field.type}): {error}", range(len(values)))
    value = values[rows[0]]
    return CoderError(
        f"field {field.name!r} is declared {field.type}, but got {value!r} "
        f"({type(value).__name__})",
        rows,
    )


def _fits(field: Field, value: Any) -> bool:
    try:
        pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return _keeps(field.type, [value])


def _keeps(kind: pa.DataType, values: Sequence[Any]) -> bool:
    """Whether Arrow takes these values as they are.

    It cuts the fraction off an integer, the time off a date and unknown members off a struct, and
    takes numbers for dates and too large ones for infinity, all without a word.
    """
    if not (pa.types.is_nested(kind) or pa.types.is_primitive(kind)) or kind == pa.float64():
        return True
    types = set(map(type, values))
    types.discard(type(None))
    if pa.types.is_integer(kind):
        return types <= {int} or all(value is None or value == int(value) for value in values)
    if pa.types.is_date(kind):
        return all(issubclass(t, datetime.date) and not issubclass(t, _MOMENTS) for t in types)
    if pa.types.is_timestamp(kind):
        return all(issubclass(t, _MOMENTS) for t in types)
    present = [value for value in values if value is not None]
    if pa.types.is_float32(kind):
        return all(abs(value) <= _LARGEST_FLOAT or not math.isfinite(value) for value in present)
    if pa.types.is_list(kind):
        return _keeps(kind.value_type, list(chain.from_iterable(present)))
    if pa.types.is_map(kind):
        pairs = [
            pair for one in present for pair in (one.items() if isinstance(one, dict) else one)
        ]
        keys, items = [key for key, _ in pairs], [item for _, item in pairs]
        return _keeps(kind.key_type, keys) and _keeps(kind.item_type, items)
    return not pa.types.is_struct(kind) or _keeps_members(kind, present)


def _keeps_members(kind: pa.DataType, values: Sequence[Any]) -> bool:
    names = {field.name for field in kind}
    dicts = [value for value in values if isinstance(value, dict)]
    return all(value.keys() <= names for value in dicts) and all(
        _keeps(field.type, [value.get(field.name) for value in dicts]) for field in kind
    )
