"""Acks beyond the commit point, as a short text that is stored with the commit.

Kafka gives each committed offset a text of its own, by default at most 4096 UTF-16 units long, of
which the client takes one. There are two ways to write a set of offsets. Run lengths suit the usual
case: one stuck message, and everything behind it done. Bits suit a set full of holes. Each way is
also tried deflated, and the shortest wins.

The bytes become text by base 64 where that fits, and else by characters that hold 15 bits each and
count as one unit. A set that does not fit is cut off at the far end, where the cut costs least: a
restart processes those messages again, and skips none. Cut data reads as its beginning, so a cut
needs no search.
"""

import base64
import zlib
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparkstorm.kafka.offsets.ranges import Range

__all__ = ["decode_acks", "encode_acks"]

_MOST_RUNS = 1 << 16
"""Runs beyond these are left to the bits."""

_MOST_SPAN = 1 << 22
"""Offsets that a bit set may span, when writing and when reading what others wrote."""

_MOST_BYTES = max(_MOST_SPAN // 8, _MOST_RUNS * 20)
"""Bytes that inflating may give: the text comes from outside."""

_RUNS, _BITS = "r", "b"
"""How the bytes are to be read; in capitals if they are deflated."""

_WIDE = 0x3400
"""The first of 32,768 characters that take 15 bits each: none is a surrogate."""
_WIDE_BITS = 15

_LAST = 1 << 62
"""No log gets that far."""

_GROUPS = np.arange(9, dtype=np.int64) * 7

Edges: TypeAlias = NDArray[np.int64]
"""Start, stop, start, stop, …: ascending, counted from the commit point."""


class _Form(NamedTuple):
    """One way to write a set; not whole if it holds only the beginning."""

    kind: str
    data: bytes
    whole: bool


def encode_acks(
    base: int, done: Iterable[Range], limit: int, *, wide: bool = False
) -> tuple[str, int]:
    """Return the text, and how many offsets of the far end found no room in it.

    Args:
        base: the commit point; every range lies beyond it.
        done: sorted ranges that neither overlap nor touch.
        limit: the most characters.
        wide: whether characters beyond ASCII may be used.

    >>> encode_acks(7, [(8, 10_008)], 4000)
    ('rAZBO', 0)
    """
    edges = np.fromiter(chain.from_iterable(done), np.int64) - base
    if not len(edges):
        return "", 0
    forms = _forms(edges)
    for alphabet in (_in_base_64, _in_wide) if wide else (_in_base_64,):
        texts = [form.kind + alphabet(form.data) for form in forms if form.whole]
        if texts and len(shortest := min(texts, key=len)) <= limit:
            return shortest, 0
    room = (limit - 1) * _WIDE_BITS // 8 - 1 if wide else (limit - 1) * 6 // 8
    cuts = [form._replace(data=form.data[: max(room, 0)]) for form in forms]
    best = max(cuts, key=_kept)
    if not (kept := _kept(best)):
        return "", _size(edges)
    return best.kind + (_in_wide if wide else _in_base_64)(best.data), _size(edges) - kept


def decode_acks(base: int, text: str) -> list[Range]:
    """Return the ranges of a text by :func:`encode_acks`.

    Raises:
        ValueError: the text is none of ours.
    """
    if not text:
        return []
    kind, letters = text[0], text[1:]
    data = _from_wide(letters) if letters[:1] >= chr(_WIDE) else _from_base_64(letters)
    edges = (_read(kind, data) + base).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _forms(edges: Edges) -> list[_Form]:
    runs = edges[: 2 * _MOST_RUNS]
    plain = [
        _Form(_RUNS, _as_runs(runs), len(runs) == len(edges)),
        _Form(_BITS, _as_bits(edges), bool(edges[-1] <= _MOST_SPAN)),
    ]
    return plain + [
        _Form(form.kind.upper(), _deflate(form.data, strategy), form.whole)
        for form in plain
        for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)  # regular sets, random ones
    ]


def _kept(form: _Form) -> int:
    """How many offsets a cut form still holds."""
    return _size(_read(form.kind, form.data))


def _size(edges: Edges) -> int:
    return int(edges[1::2].sum() - edges[::2].sum())


def _read(kind: str, data: bytes) -> Edges:
    """Read the bytes of a form, of which the far end may be missing."""
    if kind.isupper():
        data = _inflate(data)
    match kind.lower():
        case "r":
            return _from_runs(data)
        case "b":
            bits = np.unpackbits(np.frombuffer(data, np.uint8)).astype(np.int8)
            return np.flatnonzero(np.diff(bits, prepend=0, append=0)).astype(np.int64)
        case _:
            raise ValueError(f"unknown kind {kind!r}")


def _as_runs(edges: Edges) -> bytes:
    """Gap, run, gap, run, …; seven bits a byte, the lowest first, all but the last marked."""
    numbers = np.diff(edges, prepend=0)[:, None] >> _GROUPS
    marked = numbers & 127 | (numbers > 127) << 7
    used = numbers > 0
    used[:, 0] = True
    return marked[used].astype(np.uint8).tobytes()


def _from_runs(data: bytes) -> Edges:
    """Read runs; a number or a run without an end is left out."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 128)
    ends = ends[: len(ends) // 2 * 2]
    if not len(ends):
        return np.zeros(0, np.int64)
    begins = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - begins + 1
    if lengths.max() > len(_GROUPS):
        raise ValueError("a number too large")
    raw = raw[: ends[-1] + 1]
    place = np.arange(len(raw)) - np.repeat(begins, lengths)
    edges = np.cumsum(np.add.reduceat((raw & 127).astype(np.int64) << 7 * place, begins))
    if edges[-1] > _LAST or np.any(np.diff(edges, prepend=0) < 0):  # below 0 after an overflow
        raise ValueError("numbers too large")
    return edges


def _as_bits(edges: Edges) -> bytes:
    edges = np.minimum(edges, _MOST_SPAN)
    steps = np.zeros(int(edges[-1]) + 1, np.int8)
    steps[edges[::2]] = 1
    steps[edges[1::2]] = -1
    steps[-1] = 0  # ranges behind the span begin and end there
    return np.packbits(np.cumsum(steps, dtype=np.int8).astype(np.bool_)[:-1]).tobytes()


def _deflate(data: bytes, strategy: int) -> bytes:
    deflater = zlib.compressobj(6, wbits=-15, strategy=strategy)
    return deflater.compress(data) + deflater.flush()


def _inflate(data: bytes) -> bytes:
    """Inflate, but no more than we would ever have written."""
    try:
        return zlib.decompressobj(wbits=-15).decompress(data, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _in_base_64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _from_base_64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _in_wide(data: bytes) -> str:
    bits = np.unpackbits(np.frombuffer(data + b"\1", np.uint8))  # the 1 ends the data
    rows = np.zeros(-(-len(bits) // _WIDE_BITS) * _WIDE_BITS, np.uint16)
    rows[: len(bits)] = bits
    codes = rows.reshape(-1, _WIDE_BITS) @ (1 << np.arange(_WIDE_BITS, dtype=np.uint16)[::-1])
    return (codes + np.uint16(_WIDE)).astype("<u2").tobytes().decode("utf-16-le")


def _from_wide(text: str) -> bytes:
    codes = np.array([ord(letter) for letter in text], np.int64) - _WIDE
    if codes.min() < 0 or codes.max() >= 1 << _WIDE_BITS:
        raise ValueError("a character that holds nothing")
    bits = codes[:, None] >> np.arange(_WIDE_BITS)[::-1] & 1
    return np.packbits(bits.astype(np.uint8).ravel()).tobytes().rstrip(b"\0")[:-1]
