"""Arrays of a declared type: values go in unchanged, or not at all."""

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sparkstorm.texts.user_errors import is_of_value

__all__ = ["Piece", "fitting_array", "fitting_pieces", "joined"]

Piece: TypeAlias = tuple[int, pa.Array | None]
"""The first row of some values, and their array; None for a single row that does not fit."""

_MOMENTS = (datetime.datetime, np.datetime64)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_TEXT = (str, bytes, bytearray, memoryview)


def fitting_array(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Encode values of a type.

    Raises:
        Exception: Arrow refuses some values or would change them, or a value's own methods raise.
    """
    # First, for pyarrow makes a map of [None] that aborts the process when it is read, or nested.
    if not _keeps(kind, values):
        raise ValueError("some values would be changed")
    return pa.array(values, kind)


def fitting_pieces(kind: pa.DataType, values: list[Any], start: int = 0) -> Iterator[Piece]:
    """Encode values in pieces: halve them until each piece fits, down to a single row.

    Arrow takes structs as dicts, tuples or pairs, but only a single shape per array.
    """
    try:
        yield start, fitting_array(kind, values)
    except BaseException as error:  # values of the user's, with any methods
        if not is_of_value(error):
            raise
        if len(values) == 1:
            yield start, None
            return
        middle = len(values) // 2
        yield from fitting_pieces(kind, values[:middle], start)
        yield from fitting_pieces(kind, values[middle:], start + middle)


def joined(arrays: Sequence[pa.Array]) -> pa.Array | None:
    """Return one array of all pieces; None if they are too large for an array."""
    try:
        return pa.concat_arrays(arrays)
    except (pa.ArrowException, TypeError):
        return None


def _keeps(kind: pa.DataType, values: Sequence[Any]) -> bool:
    """Whether Arrow would keep these values unchanged; raises for some values that Arrow refuses.

    Without a word Arrow cuts the fraction off an integer, the time off a date and unknown members
    off a struct. Arrow also takes numbers for dates, large numbers for infinity, and text for a
    list of letters.
    """
    if not (pa.types.is_nested(kind) or pa.types.is_primitive(kind)) or kind == pa.float64():
        return True
    types = set(map(type, values))
    # None is the null of every Arrow type.
    types.discard(type(None))
    if pa.types.is_nested(kind):
        present = [value for value in values if value is not None]
        return not any(map(_is_no_collection, types)) and _keeps_inner(kind, present)
    if pa.types.is_integer(kind):
        return types <= {int} or all(value is None or value == int(value) for value in values)
    if pa.types.is_date(kind):
        return all(issubclass(t, datetime.date) and not issubclass(t, _MOMENTS) for t in types)
    if pa.types.is_timestamp(kind):
        return all(issubclass(t, _MOMENTS) for t in types)
    if pa.types.is_float32(kind):
        present = [value for value in values if value is not None]
        return all(abs(value) <= _LARGEST_FLOAT or not math.isfinite(value) for value in present)
    return True


def _is_no_collection(kind: type) -> bool:
    """Whether values are whole (text), may be endless (iterators), or lose keys in Arrow."""
    if issubclass(kind, Mapping):
        return not issubclass(kind, dict | pa.Scalar)
    return issubclass(kind, _TEXT) or not hasattr(kind, "__len__")


def _keeps_inner(kind: pa.DataType, values: Sequence[Any]) -> bool:
    if pa.types.is_map(kind):
        return _keeps_entries(kind, values)
    if pa.types.is_struct(kind):
        return _keeps_members(kind, values)
    return _keeps(kind.value_type, list(chain.from_iterable(values)))


def _keeps_entries(kind: pa.DataType, values: Sequence[Any]) -> bool:
    # A map's value may be a dict or a sequence of pairs.
    dicts = [value for value in values if isinstance(value, dict)]
    others = [value for value in values if not isinstance(value, dict)]
    pairs = list(chain.from_iterable(others))
    if not all(issubclass(t, tuple) for t in set(map(type, pairs))):
        return False
    pairs += chain.from_iterable(value.items() for value in dicts)
    keys, items = [key for key, _ in pairs], [item for _, item in pairs]
    return _keeps(kind.key_type, keys) and _keeps(kind.item_type, items)


def _keeps_members(kind: pa.DataType, values: Sequence[Any]) -> bool:
    # Arrow reads all by the shape of the first: a tuple after pairs is no longer read in order.
    shapes = {_shape(t) for t in set(map(type, values))}
    if len(shapes) != 1:
        return not shapes
    if shapes == {tuple}:
        columns = zip(*values, strict=True)
        return all(_keeps(field.type, one) for field, one in zip(kind, columns, strict=True))
    dicts = values if shapes == {dict} else [_members(value) for value in values]
    names = {field.name for field in kind}
    return all(members.keys() <= names for members in dicts) and all(
        _keeps(field.type, [members.get(field.name) for members in dicts]) for field in kind
    )


def _shape(kind: type) -> type:
    return next((shape for shape in (dict, tuple) if issubclass(kind, shape)), object)


def _members(pairs: Any) -> dict[Any, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members
