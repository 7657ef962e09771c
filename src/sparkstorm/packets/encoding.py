"""The bytes of columns: the encoding of a packet's values and numbers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.packets.columns import ArrowColumn, Column, DictColumn, ObjectColumn, pickled

__all__ = ["Loads", "decode_columns", "encode_column", "narrow", "widen"]

_DICTIONARY, _ARROW, _PICKLE = (letter.ljust(8, b"\0") for letter in (b"d", b"a", b"p"))
"""A column's encoding; eight bytes, so that the bytes behind stay aligned for Arrow."""

Loads: TypeAlias = Callable[[memoryview], list[Any]]
"""Reads a pickled list, written by our own worker."""


def encode_column(column: Column) -> list[bytes]:
    """Encode a column in one or two parts.

    Raises:
        CoderError: some values cannot be sent.
    """
    if isinstance(column, DictColumn):
        small = column.compact()
        return [_DICTIONARY + _arrow_bytes(small.dictionary), narrow(small.indices)]
    if isinstance(column, ArrowColumn):
        return [_ARROW + _arrow_bytes(column.array)]
    return [_PICKLE + pickled(column.to_list())]


def decode_columns(parts: Sequence[memoryview], count: int, load: Loads) -> Iterator[Column]:
    """Decode columns of ``count`` values."""
    waiting = iter(parts)
    for part in waiting:
        encoding, data = bytes(part[:8]), part[8:]
        if encoding == _DICTIONARY:
            indices = widen(next(waiting), count).astype(np.int32)
            yield DictColumn(_read_arrow(data), indices)
        elif encoding == _ARROW:
            yield ArrowColumn(_read_arrow(data))
        else:
            yield ObjectColumn(load(data))


def _arrow_bytes(array: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays([array], names=[""])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _read_arrow(part: memoryview) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(part)) as reader:
        return reader.read_next_batch().column(0)


def narrow(numbers: NDArray[Any]) -> bytes:
    """Encode non-negative numbers, each in as few bytes as the largest needs."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0)))).tobytes()


def widen(part: memoryview, count: int) -> NDArray[Any]:
    """Decode ``count`` numbers."""
    return np.frombuffer(part, f"<u{len(part) // count}" if count else np.uint8)
