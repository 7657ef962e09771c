"""What is done beyond the commit point, as a short text that is stored with the commit.

Kafka gives each committed offset a text of its own, by default at most 4096 UTF-16 units long, of
which the client takes one. Two ways of writing the same set, each also compressed, and the
shortest wins: run lengths for the usual case (one stuck message, everything behind it done), bits
for a set full of holes. What does not fit is cut off at the far end, where it costs least: those
messages are processed again after a restart, never skipped.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from sparkstorm.kafka.ranges import Range

__all__ = ["decode_acks", "encode_acks"]

_MAX_RUNS = 50_000
"""Runs beyond this are not even tried: each takes at least a bit of what there is room for."""

_MAX_SPAN = 1 << 22
"""Offsets that a bit set may span, when writing and when reading what others wrote."""

_RUNS, _BITS = "r", "b"
"""How the bytes are to be read; in capitals if they are compressed."""


def encode_acks(base: int, done: Iterable[Range], limit: int) -> tuple[str, int]:
    """Return the text of at most ``limit`` characters, and up to which offset it knows.

    Args:
        base: the commit point; every range lies beyond it.
        done: sorted ranges that neither overlap nor touch.
        limit: the most characters.

    >>> encode_acks(7, [(8, 10_008)], 4000)
    ('rAZBO', 10008)
    """
    ranges = list(islice(done, _MAX_RUNS))
    fits, text = 0, ""
    low, high = 1, len(ranges)
    while low <= high:  # how many of the first ranges fit: usually all
        count = high if not fits and high == len(ranges) else (low + high) // 2
        tried = _shortest(base, ranges[:count])
        if len(tried) <= limit:
            fits, text, low = count, tried, count + 1
        else:
            high = count - 1
    return text, ranges[fits - 1][1] if fits else base


def decode_acks(base: int, text: str) -> list[Range]:
    """Return the ranges of a text by :func:`encode_acks`.

    Raises:
        ValueError: it is no such text.
    """
    if not text:
        return []
    kind, padded = text[0], text[1:] + "=" * (-len(text[1:]) % 4)
    data = base64.b64decode(padded, validate=True)
    if kind.isupper():
        data = _inflate(data)
    match kind.lower():
        case "r":
            numbers = list(_from_varints(data))
            edges = np.cumsum([base, *numbers]).tolist()
            if len(numbers) % 2:
                raise ValueError("a run without an end")
        case "b":
            bits = np.unpackbits(np.frombuffer(data, np.uint8)).astype(np.int8)
            edges = (np.flatnonzero(np.diff(bits, prepend=0, append=0)) + base).tolist()
            edges = [0, *edges]
        case _:
            raise ValueError(f"unknown kind {kind!r}")
    return list(zip(edges[1::2], edges[2::2], strict=True))


def _shortest(base: int, ranges: Sequence[Range]) -> str:
    forms = {_RUNS: _as_runs(base, ranges)}
    if ranges[-1][1] - base <= _MAX_SPAN:
        forms[_BITS] = _as_bits(base, ranges)
    forms |= {kind.upper(): zlib.compress(data, 9) for kind, data in forms.items()}
    kind = min(forms, key=lambda kind: len(forms[kind]))
    return kind + base64.b64encode(forms[kind]).decode().rstrip("=")


def _as_runs(base: int, ranges: Sequence[Range]) -> bytes:
    """Gap, run, gap, run, …; seven bits a byte, the lowest first, all but the last marked."""
    edges = [base, *chain.from_iterable(ranges)]
    out = bytearray()
    for number in np.diff(np.array(edges, np.int64)).tolist():
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
    return bytes(out)


def _as_bits(base: int, ranges: Sequence[Range]) -> bytes:
    bits = np.zeros(ranges[-1][1] - base, np.bool_)
    for start, stop in ranges:
        bits[start - base : stop - base] = True
    return np.packbits(bits).tobytes()


def _from_varints(data: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number, shift = 0, 0
        elif shift > 63:
            raise ValueError("a number too large")
    if shift:
        raise ValueError("a number without an end")


def _inflate(data: bytes) -> bytes:
    """Decompress, but no more than we would ever have written: the text comes from outside."""
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(data, max(_MAX_SPAN // 8, _MAX_RUNS * 20))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflater.eof:
        raise ValueError("cut off")
    return out
