"""Text files: how each is written, and its content from any offset, packed or not.

A packed file has no offsets to jump to. So whoever reads on keeps the open file, and reads from the
beginning only what lies further back.
"""

import bz2
import codecs
import gzip
import lzma
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkstorm.errors import ConfigError, SpoutConnectionError

__all__ = [
    "BLOCK",
    "Form",
    "Unpacked",
    "ends_of",
    "form_of",
    "has_open_line",
    "lines_of",
    "plain_name",
    "read_bytes",
    "unit_of",
]

BLOCK = 4 * 1024 * 1024
"""Bytes that are read at a time; a multiple of every character's size."""

_MOST_OPEN = 4
"""Packed files that a process keeps open."""

_PACKED: Mapping[str, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    # The second part begins the first block or ends an empty file: a text may begin with BZh1.
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "zip": re.compile(rb"PK\x03\x04"),
}
"""The first bytes of packed files. Names may lie: a browser unpacks ``x.gz`` and keeps the name."""

_OPENERS: Mapping[str, Callable[[str], Any]] = {
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
    "zstd": lambda path: pa.input_stream(path, compression="zstd"),
}

_MARKS = (
    # UTF-32 first: its mark begins with that of UTF-16.
    ("utf-32-le", codecs.BOM_UTF32_LE),
    ("utf-32-be", codecs.BOM_UTF32_BE),
    ("utf-8", codecs.BOM_UTF8),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
)
"""The byte order marks, with the encodings that they tell."""

_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""The encodings of the texts behind the mark; without a mark, the order of most machines."""

_UNITS = {"utf-16-le": "<u2", "utf-16-be": ">u2", "utf-32-le": "<u4", "utf-32-be": ">u4"}
"""The units of which a line end is one, as numpy's types; bytes for all other encodings."""


@final
@dataclass(frozen=True, slots=True)
class Form:
    """How a text file is written.

    Attributes:
        packing: how the file is packed; "" if it is not.
        encoding: how the text is encoded.
        mark: the bytes of the byte order mark, before the first line.
    """

    packing: str
    encoding: str
    mark: int


def plain_name(encoding: str) -> str:
    """Return an encoding's name without a byte order mark.

    >>> plain_name("UTF8"), plain_name("utf-16"), plain_name("latin-1")
    ('utf-8', 'utf-16-le', 'iso8859-1')

    Raises:
        ConfigError: Python does not know the encoding, or its line ends are not found by bytes.
    """
    try:
        name = codecs.lookup(encoding).name
        name = _WITHOUT_MARK.get(name, name)
        fits = "\n".encode(name) == np.array([10], unit_of(name)).tobytes()
    except (LookupError, TypeError, UnicodeError):
        fits = False
    if not fits:
        raise ConfigError(
            f"encoding {encoding!r} is none that LinesSpout reads: give one of Python's text "
            f"encodings whose line end is that of ASCII or Unicode, such as 'utf-8', 'utf-16' or "
            f"'cp1252'"
        )
    return name


def form_of(path: str, encoding: str) -> Form:
    """Find out how a file is written: by its first bytes, and else by the given encoding.

    Raises:
        SpoutConnectionError: the file is an archive of several files.
    """
    with open(path, "rb") as file:
        begin = file.read(16)
    packing = next((name for name, magic in _PACKED.items() if magic.match(begin)), "")
    if packing == "zip":
        raise SpoutConnectionError(f"{path!r} is a zip archive: unpack it, and give its files")
    if packing:
        with _OPENERS[packing](path) as stream:
            begin = stream.read(4)
    # In any other encoding, bytes like those of a mark are text.
    if encoding.startswith("utf-"):
        for found, mark in _MARKS:
            if begin.startswith(mark):
                return Form(packing, found, len(mark))
    return Form(packing, encoding, 0)


@final
class Unpacked:
    """The content of a packed file, read mostly forwards.

    Args:
        path: the file.
        packing: how it is packed.
    """

    def __init__(self, path: str, packing: str) -> None:
        self.of = (path, packing)
        self._stream = _OPENERS[packing](path)
        self._start = 0
        self._kept = b""

    @property
    def start(self) -> int:
        """The lowest offset that can be read."""
        return self._start

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes from an offset on, fewer only at the end of the file.

        The bytes can be read again: a later call may begin at the same offset, or behind.
        """
        while self._start + len(self._kept) <= offset and (block := self._stream.read(BLOCK)):
            self._start += len(self._kept)
            self._kept = block
        parts = [self._kept[offset - self._start :]]
        there = len(parts[0])
        while there < size and (block := self._stream.read(BLOCK)):
            parts.append(block)
            there += len(block)
        self._start, self._kept = offset, b"".join(parts)
        return self._kept[:size]

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


_OPEN: list[Unpacked] = []
"""The packed files that this process has open, the latest last."""

_LOCK = threading.Lock()


def read_bytes(path: str, packing: str, offset: int, size: int) -> bytes:
    """Return bytes of a file's content, fewer only at its end.

    Of a packed file, one process reads splits in any order, but over the batches always further on:
    the open file nearest before the offset serves, so each is unpacked once.
    """
    if not packing:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(size)
    with _LOCK:
        fit = [one for one in _OPEN if one.of == (path, packing) and one.start <= offset]
        reader = max(fit, key=lambda one: one.start, default=None)
        if reader is not None:
            _OPEN.remove(reader)
    reader = reader or Unpacked(path, packing)
    data = reader.read(offset, size)
    with _LOCK:
        _OPEN.append(reader)
        spare = _OPEN[:-_MOST_OPEN]
        del _OPEN[:-_MOST_OPEN]
    for one in spare:
        one.close()
    return data


def ends_of(data: bytes, encoding: str) -> NDArray[np.bool_]:
    r"""Return for each unit of an encoded text whether it ends a line, without half units.

    >>> ends_of(b"a\nb", "utf-8").tolist()
    [False, True, False]
    """
    unit = unit_of(encoding)
    found: NDArray[np.bool_] = np.frombuffer(data, unit, len(data) // unit.itemsize) == 10
    return found


def has_open_line(data: bytes, encoding: str) -> bool:
    r"""Whether an encoded text goes on after its last line end.

    >>> has_open_line(b"a", "utf-8"), has_open_line(b"a\n", "utf-8"), has_open_line(b"", "utf-8")
    (True, False, False)
    """
    unit = unit_of(encoding).itemsize
    return bool(data) and (len(data) % unit > 0 or not ends_of(data[-unit:], encoding)[0])


def lines_of(data: bytes, encoding: str) -> list[bytes]:
    r"""Return the lines of an encoded text, without their ends.

    >>> lines_of("a\nb".encode("utf-16-le"), "utf-16-le")
    [b'a\x00', b'b\x00']
    """
    unit = unit_of(encoding).itemsize
    start, lines = 0, []
    for end in np.flatnonzero(ends_of(data, encoding)).tolist():
        lines.append(data[start : end * unit])
        start = (end + 1) * unit
    return [*lines, data[start:]] if start < len(data) else lines


def unit_of(encoding: str) -> np.dtype[Any]:
    """Return the type of the units of an encoding; a line end is one unit."""
    return np.dtype(_UNITS.get(encoding, "u1"))
