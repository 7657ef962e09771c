"""The canonical hash of fields grouping: the same in every process, on every platform.

Version 1. Equal numbers have equal hashes, whatever their type: ``1``, ``1.0``, ``True`` and
``Decimal(1)`` go to the same task. Text hashes as its UTF-8 bytes. :func:`hash_value` is the
definition; :func:`hash_array` computes the same for Arrow arrays at vector speed.
"""

import datetime
import decimal
import hashlib
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64, mix64
from sparkstorm.errors import EmitError
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of

__all__ = ["combine", "combine_one", "hash_array", "hash_value", "hash_values"]

_MASK = (1 << 64) - 1
_BYTES, _INTEGER, _FLOAT, _DATE, _TIME, _TUPLE = (
    0x9AE16A3B2F90404F,
    0xC3A5C85C97CB3127,
    0xB492B66FBE98F273,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
    0x165667B19E3779F9,
)
_NONE = 0xFF51AFD7ED558CCD
_PRIME = (1 << 61) - 1
"""Integers beyond floats and 64 bits are hashed by their remainder."""
_SHORT = 64
"""Bytes up to this length are mixed in words of eight; longer ones by BLAKE2b."""

_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_NAIVE = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - for naive values


def hash_value(value: Any) -> int:
    """Return the 64-bit hash of a value.

    Raises:
        EmitError: the value has no stable hash.

    >>> hash_value(1) == hash_value(1.0) == hash_value(True)
    True
    """
    try:
        return _hash(value)
    except EmitError:
        raise
    except BaseException as error:  # odd values: NaT, a user's time zone, tuples without end
        if not is_of_value(error):
            raise
        kind = type(value).__name__
        raise EmitError(f"cannot group by a {kind}: {message_of(error)}") from error


def _hash(value: Any) -> int:
    if isinstance(value, str):
        return _hash_bytes(value.encode(errors="surrogatepass"))
    if isinstance(value, bytes | bytearray):
        return _hash_bytes(bytes(value))
    if value is None:
        return _NONE
    if isinstance(value, int | np.integer | np.bool_):
        return _hash_integer(int(value))
    if isinstance(value, float | np.floating):
        return _hash_float(float(value))
    if isinstance(value, decimal.Decimal):
        return _hash_decimal(value)
    # Before dates, because a datetime is a date, too. With a zone, the moment alone counts.
    if isinstance(value, datetime.datetime):
        if value.utcoffset() is None:
            since = value.replace(tzinfo=None) - _EPOCH_NAIVE
        else:
            since = value - _EPOCH_UTC
        return _mix(since // datetime.timedelta(microseconds=1) ^ _TIME)
    if isinstance(value, datetime.date):
        return _mix((value - _EPOCH).days ^ _DATE)
    if isinstance(value, tuple):
        folded = _TUPLE
        for part in value:
            folded = _mix(folded * 31 + _hash(part))
        return folded
    raise EmitError(
        f"cannot group by {shown(value)}: a {type(value).__name__} has no stable hash. Group by "
        f"text, bytes, numbers, booleans, None, dates, decimals or tuples of these"
    )


def hash_array(array: pa.Array) -> U64:
    """Return the hashes of an array's values, equal to :func:`hash_value` of each."""
    kind = array.type
    if array.null_count == 0:
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return _hash_binary_array(array)
        if pa.types.is_integer(kind) and kind != pa.uint64():
            return _mix_array(array.cast(pa.int64()).to_numpy().view(np.uint64), _INTEGER)
        if pa.types.is_boolean(kind):
            return _mix_array(array.cast(pa.int64()).to_numpy().view(np.uint64), _INTEGER)
        if pa.types.is_date32(kind):
            days = array.cast(pa.int32()).to_numpy().astype(np.int64)
            return _mix_array(days.view(np.uint64), _DATE)
        if pa.types.is_timestamp(kind) and kind.unit == "us":
            return _mix_array(array.cast(pa.int64()).to_numpy().view(np.uint64), _TIME)
    return hash_values(array.to_pylist())


def hash_values(values: Sequence[Any]) -> U64:
    """Return the hashes of arbitrary values, one by one."""
    return np.fromiter((hash_value(value) for value in values), np.uint64, len(values))


def combine(hashes: Sequence[U64]) -> U64:
    """Fold the hashes of several fields into one; their order matters."""
    folded = hashes[0]
    for further in hashes[1:]:
        folded = mix64(folded * np.uint64(31) + further)
    return folded


def combine_one(hashes: Sequence[int]) -> int:
    """Fold the hashes of one tuple's fields, as :func:`combine` does for many tuples."""
    folded = hashes[0]
    for further in hashes[1:]:
        folded = _mix(folded * 31 + further)
    return folded


def _mix(value: int) -> int:
    value &= _MASK
    value ^= value >> 30
    value = value * 0xBF58476D1CE4E5B9 & _MASK
    value ^= value >> 27
    value = value * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


def _mix_array(values: U64, salt: int) -> U64:
    return mix64(values ^ np.uint64(salt))


def _hash_integer(value: int) -> int:
    if -(1 << 63) <= value < 1 << 63:
        return _mix(value ^ _INTEGER)
    try:
        as_float = float(value)
    except OverflowError:
        return _mix(value % _PRIME ^ _INTEGER)
    # An integer that a float holds exactly must hash as the float does.
    return _hash_float_bits(as_float) if int(as_float) == value else _mix(value % _PRIME ^ _INTEGER)


def _hash_float(value: float) -> int:
    if value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return _mix(int(value) ^ _INTEGER)
    return _hash_float_bits(value)


def _hash_float_bits(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return _mix(bits ^ _FLOAT) if value == value else _mix(_FLOAT)


def _hash_decimal(value: decimal.Decimal) -> int:
    """Hash the number itself, independent of the thread's decimal context and precision."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # an infinity, or not a number
        return _hash_float(math.nan if value.is_nan() else float(value))
    number = int(decimal.Decimal((sign, digits, 0)))
    while exponent < 0 and number % 10 == 0 and number:
        number, exponent = number // 10, exponent + 1
    if not number:
        return _hash_integer(0)
    if exponent >= 0:
        if value.adjusted() <= sys.float_info.max_10_exp:
            return _hash_integer(number * 10**exponent)
        # Not written out: the power may have a billion digits.
        return _mix(number * pow(10, exponent, _PRIME) % _PRIME ^ _INTEGER)
    as_float = float(value)
    if decimal.Decimal(as_float) == value:
        return _hash_float_bits(as_float)
    return _hash_bytes(f"{number:x}E{exponent}".encode())


def _hash_bytes(data: bytes) -> int:
    if len(data) > _SHORT:
        return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    folded = _mix(len(data) ^ _BYTES)
    for start in range(0, len(data), 8):
        folded = _mix(folded ^ int.from_bytes(data[start : start + 8], "little"))
    return folded


def _hash_binary_array(array: pa.Array) -> U64:
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int32, len(array) + 1, array.offset * 4)
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    hashes = _mix_array(lengths.view(np.uint64), _BYTES)
    if buffers[2] is None or not len(array):
        return hashes
    short = lengths <= _SHORT
    _mix_words(hashes, np.frombuffer(buffers[2], np.uint8), starts, np.where(short, lengths, 0))
    for index in np.flatnonzero(~short):
        data = buffers[2][int(starts[index]) : int(starts[index] + lengths[index])].to_pybytes()
        hashes[index] = _hash_bytes(data)
    return hashes


def _mix_words(
    hashes: U64, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> None:
    """Mix the first, second, … word of eight bytes of all values in turn, in place."""
    # The last value is read in whole words too, so there must be bytes behind it.
    padded = np.zeros((len(data) + 23) // 8 * 8, np.uint8)
    padded[: len(data)] = data
    words = padded.view("<u8")
    for position in range(0, int(lengths.max(initial=0)), 8):
        rows = np.flatnonzero(lengths > position)
        left = np.minimum(lengths[rows] - position, 8).astype(np.uint64)
        mask = np.uint64(_MASK) >> (np.uint64(64) - left * np.uint64(8))
        hashes[rows] = mix64(hashes[rows] ^ (_load(words, starts[rows] + position) & mask))


def _load(words: U64, at: NDArray[np.int64]) -> U64:
    """Read eight bytes at any byte position, from two aligned words."""
    index, shift = at >> 3, (at & 7).astype(np.uint64) * np.uint64(8)
    low = words[index] >> shift
    high = (words[index + 1] << np.uint64(1)) << (np.uint64(63) - shift)
    loaded: U64 = low | high
    return loaded
