r"""Frames: how messages lie in a stream of bytes. JSON text, a line ``end`` behind each.

A writer sends one line of JSON and one line ``end``, in ASCII: some children read exactly that. A
reader takes all that children write: JSON over several lines, CRLF, a byte order mark, control
characters inside of strings. Text that the child printed before a message comes out as
:class:`Stray`, a frame without any message as :class:`Broken`: it may have been an emit, so whoever
reads on could lose one.

>>> JsonSerializer().encode({"pid": 7})
b'{"pid":7}\nend\n'
>>> reader = JsonSerializer().reader()
>>> reader.feed(b'{"pid"'), reader.feed(b': 7}\r\nend\r\n')
([], [{'pid': 7}])
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, final

from sparkstorm.errors import ProtocolError

__all__ = ["Broken", "Frame", "FrameReader", "JsonSerializer", "Serializer", "Stray", "Wire"]

Wire: TypeAlias = Any
"""An object of JSON's types."""

_MOST_BYTES: Final = 512 * 1024 * 1024
"""A longer frame is no message: the child does not speak the protocol."""

_END: Final = re.compile(rb"\nend\r?(?=\n)")
_LONGEST_END: Final = len(b"\nend\r")
_BOM: Final = "\ufeff"
_MOST_STARTS: Final = 16
"""So many braces are tried as the beginning of a message that stands behind printed text."""

_BROKEN: Final = re.compile(
    r"""\{ \s* "command" \s* : \s* "(?P<command>error|log)" \s* , \s*
        "msg" \s* : \s* "(?P<msg>.*)" \s* (?: , \s* "level" \s* : \s* (?P<level>\d+) \s* )? \}""",
    re.DOTALL | re.VERBOSE,
)
_BROKEN_METRICS: Final = re.compile(
    r"""\{ \s* "command" \s* : \s* "metrics" \s* , \s*
        "name" \s* : \s* "(?P<name>.*?)" \s* , \s* "params" \s* : \s* (?P<params>.*) \}""",
    re.DOTALL | re.VERBOSE,
)


@final
@dataclass(frozen=True, slots=True)
class Stray:
    """Text that was printed into the stream, in front of a message."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Broken:
    """A frame in which no message is found."""

    text: str


Frame: TypeAlias = "Wire | Stray | Broken"


class FrameReader(Protocol):
    """Makes objects of the bytes of one stream; never blocks, reads or writes."""

    def feed(self, data: bytes) -> list[Frame]:
        """Take in bytes, however they are cut, and return what is complete.

        Raises:
            ProtocolError: the stream can be read no further.
        """
        ...

    def close(self) -> list[Frame]:
        """Return what is left at the end of the stream."""
        ...

    @property
    def unread(self) -> int:
        """How many of the last bytes are the beginning of a message."""
        ...


class Serializer(Protocol):
    """How messages are written: Storm's ``ISerializer``."""

    def encode(self, wire: Wire) -> bytes:
        """Return the bytes of one message.

        Raises:
            ValueError: it holds a value that this format does not have.
        """
        ...

    def reader(self) -> FrameReader:
        """Return a reader for one stream."""
        ...


@final
class JsonSerializer:
    """Storm's own: JSON, and a line ``end``."""

    _encoder: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

    def encode(self, wire: Wire) -> bytes:
        """Return one line of JSON and one line ``end``."""
        try:
            return b"%b\nend\n" % self._encoder.encode(wire).encode("ascii")
        except (TypeError, RecursionError) as error:
            raise ValueError(f"JSON cannot hold it: {error}") from None

    def reader(self) -> "JsonReader":
        """Return a reader for one stream."""
        return JsonReader()


@final
class JsonReader:
    """Reads frames of JSON.

    The buffer begins with a line break, so that a line ``end`` is always found behind one.
    """

    _decoder: Final = json.JSONDecoder(strict=False)

    def __init__(self) -> None:
        self._buffer = bytearray(b"\n")
        self._searched = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Take in bytes and return the objects that are complete."""
        buffer = self._buffer
        buffer += data
        start, found = 0, []
        for match in _END.finditer(buffer, self._searched):
            found += self._read(buffer[start : match.start()])
            start = match.end()
        del buffer[:start]
        self._searched = max(len(buffer) - _LONGEST_END, 0)
        if len(buffer) > _MOST_BYTES:
            raise ProtocolError(
                f"the child has sent {len(buffer):,} bytes without a line 'end': it does not "
                f"speak the multi-language protocol"
            )
        return found

    @property
    def unread(self) -> int:
        """How many of the last bytes are the beginning of a message."""
        return len(self._buffer) - 1

    def close(self) -> list[Frame]:
        """Return the last frame if its ``end`` lacks the line break, else what was begun."""
        rest = bytes(self._buffer)
        self._buffer[:] = b"\n"
        self._searched = 0
        complete = re.search(rb"\nend\r?$", rest)
        if complete is not None:
            return self._read(rest[: complete.start()])
        text = _decoded(rest)[0].strip()
        return [Stray(text)] if text else []

    def _read(self, frame: bytes | bytearray) -> list[Frame]:
        text, whole = _decoded(frame)
        if whole:
            # Nearly all children write nothing but one line of JSON between the line breaks.
            try:
                wire, end = self._decoder.raw_decode(text, 1)
            except (ValueError, RecursionError):
                wire, end = None, -1
            if end == len(text) and type(wire) is dict:
                return [wire]
        text = text.strip()
        if text.startswith(_BOM):
            text = text[1:]
        try:
            wire, end = self._decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return self._salvage(text, whole)
        if end != len(text):
            return self._salvage(text, whole)
        good = isinstance(wire, dict | list) and (whole or _is_text_only(wire))
        return [wire if good else Broken(text)]

    def _salvage(self, text: str, whole: bool) -> list[Frame]:
        """Find the message behind printed text, or one whose own text was left unescaped."""
        for start in _starts(text):
            try:
                wire = self._decoder.decode(text[start:])
            except (ValueError, RecursionError):
                wire = _repaired(text[start:])
            if not isinstance(wire, dict) or not ("command" in wire or "pid" in wire):
                continue
            if whole or _is_text_only(wire):
                printed = text[:start].strip()
                return [Stray(printed), wire] if printed else [wire]
        return [Broken(text or "end")]


def _decoded(data: bytes | bytearray) -> tuple[str, bool]:
    """Return the text, and whether all of it is UTF-8."""
    try:
        return data.decode(), True
    except UnicodeDecodeError:
        return data.decode(errors="replace"), False


def _is_text_only(wire: Wire) -> bool:
    """Whether a byte that is no UTF-8 does no harm in it: there are no values."""
    return isinstance(wire, dict) and wire.get("command") in ("log", "error")


def _starts(text: str) -> list[int]:
    starts: list[int] = []
    at = text.find("{")
    while at >= 0 and len(starts) < _MOST_STARTS:
        starts.append(at)
        at = text.find("{", at + 1)
    return starts


def _repaired(text: str) -> Wire | None:
    """Read a message whose adapter wrote JSON by hand and did not escape the text in it."""
    found = _BROKEN.fullmatch(text)
    if found is not None:
        level = found["level"]
        return {
            "command": found["command"],
            "msg": found["msg"],
            **({} if level is None else {"level": int(level[:3])}),
        }
    found = _BROKEN_METRICS.fullmatch(text)
    if found is None:
        return None
    params = found["params"].strip()
    if len(params) > 1 and params[0] == params[-1] == '"':
        params = params[1:-1]
    return {"command": "metrics", "name": found["name"], "params": params}
