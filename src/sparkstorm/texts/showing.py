"""Showing foreign text to people: everything printed, logged or raised passes through here.

Text from outside may hold characters that command a terminal, newlines that forge a log line, text
that runs backwards, halves of characters that no file accepts, or a secret.
"""

import json
import reprlib
from collections.abc import Callable
from typing import Any

from sparkstorm.texts.credentials import masked

__all__ = ["as_json", "indented", "shown", "text_of", "visible", "visible_lines"]

_MOST = 10_000
"""Characters of one line."""

_MOST_OF_LINES = 100_000

_INDENT = "    "

_LONGEST = 200
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 4
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = _LONGEST
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = 10

_UNSEEN = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE0F),  # the last of them, FE0F, belongs to many an emoji
    *range(0xE0100, 0xE01F0),
}
"""Invisible characters that Unicode counts as letters or marks."""


class _Escapes(dict[int, str | int]):
    """A table for ``str.translate`` that fills itself; visible characters stay."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        super().__init__()
        self._escape = escape

    def __missing__(self, code: int) -> str | int:
        plain = chr(code).isprintable() and code not in _UNSEEN
        self[code] = code if plain else self._escape(chr(code))
        return self[code]


def _in_python(char: str) -> str:
    return char.encode("unicode_escape").decode()


_IN_PYTHON = _Escapes(_in_python)
_IN_JSON = _Escapes(lambda char: json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f")


def visible(text: str, most: int = _MOST) -> str:
    r"""Return a text as one line of visible characters, without secrets.

    Invisible characters become Python's escapes: controls and newlines, direction marks, spaces
    without width, half characters.

    >>> visible("a\nb \x1b[2J \u202e \ud800 žluť 猫")
    'a\\nb \\x1b[2J \\u202e \\ud800 žluť 猫'
    """
    # Masked before the cut, which could leave half of a secret.
    text = _cut(masked(text), most)
    if text.isascii() and text.isprintable():
        return text
    return _cut(text.translate(_IN_PYTHON), most)


def visible_lines(text: str, indent: str = "") -> str:
    r"""Return a text of several lines, such as a traceback; each line but the first is indented.

    >>> visible_lines("ValueError: odd\r\n\x1b[31mERROR all is lost", indent="    ")
    'ValueError: odd\n    \\x1b[31mERROR all is lost'
    """
    lines = _cut(masked(text), _MOST_OF_LINES).replace("\r\n", "\n").split("\n")
    return f"\n{indent}".join(visible(line.expandtabs(4)) for line in lines)


def indented(text: str) -> str:
    """Return lines, each indented, so that no line can pass for a record of its own."""
    return _INDENT + visible_lines(text.rstrip(), _INDENT)


def shown(value: Any, most: int = _LONGEST) -> str:
    """Return the ``repr`` of any value, cut where long; a value's broken ``repr`` does no harm.

    >>> shown([1, "x"])
    "[1, 'x']"
    >>> shown(range(10**9))
    'range(0, 1000000000)'
    """
    try:
        text = _SHORT.repr(value)
    except BaseException:  # noqa: BLE001 - any error of any __repr__; huge integers
        text = f"a {type(value).__name__}"
    return visible(text, most)


def text_of(value: object) -> str:
    """Return the ``str`` of any value; a value's broken ``str`` does no harm."""
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - any error of any __str__
        return f"a {type(value).__name__}"


def as_json(value: object, *, ascii_only: bool = False) -> str:
    r"""Return JSON on one line: the exact value, with every character visible.

    >>> as_json({"text": "žluť\x9b\u202e\ud800"})
    '{"text": "žluť\\u009b\\u202e\\ud800"}'
    """
    text = json.dumps(value, ensure_ascii=ascii_only, default=text_of)
    return text if text.isascii() and text.isprintable() else text.translate(_IN_JSON)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
