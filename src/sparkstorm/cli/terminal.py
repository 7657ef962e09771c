"""The standard streams: every command writes through this module alone.

Foreign text in the output can neither command the terminal nor end the command.
"""

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable
from typing import IO, Any, final

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from sparkstorm.texts.showing import as_json, shown, text_of, visible, visible_lines

__all__ = ["Terminal", "bear_any_text", "confirm", "leave_unread", "say", "write_json"]

_DEEPEST = 100


@final
class Terminal(Console):
    """A console without markup that shows every character of a text.

    Args:
        stderr: write to stderr, not to stdout.
        soft_wrap: let the terminal break long lines.
        width: columns, if not the terminal's.
    """

    def __init__(
        self, *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None
    ) -> None:
        super().__init__(
            stderr=stderr,
            soft_wrap=soft_wrap,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the output: text with every character visible, and Rich's own control codes."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible_lines(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Write no more: nobody reads. The command itself goes on, and ends as it should."""
        self.quiet = True
        leave_unread(self.file)


def leave_unread(stream: IO[str]) -> None:
    """Lead a stream that nobody reads any more into nothing, or Python complains on exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def bear_any_text() -> None:
    """Write characters that a stream's encoding lacks as escapes, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, *, err: bool = False) -> None:
    """Write lines of text."""
    lines = visible_lines(text.removesuffix("\n"))
    _write(f"{lines}\n", err=err)


def confirm(question: str) -> None:
    """Ask a question; end the command unless the answer is yes."""
    typer.confirm(visible(question), abort=True)


def write_json(value: Any, *, flush: bool = True) -> None:
    r"""Write any value as one line of JSON; values unknown to JSON become text.

    The line gives the exact value in any encoding of stdout.

    >>> write_json({(0, 1): {2: 3j, "x": "\x9b"}})
    {"(0, 1)": {"2": "3j", "x": "\u009b"}}
    """
    ascii_only = not codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf")
    try:
        text = as_json(value, ascii_only=ascii_only)
    except (TypeError, ValueError, RecursionError):  # a key, a huge number, a value inside itself
        text = as_json(_able(value, ()), ascii_only=ascii_only)
    _write(f"{text}\n", flush=flush)


def _write(text: str, *, err: bool = False, flush: bool = True) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    if flush:
        stream.flush()


def _able(value: Any, around: tuple[int, ...]) -> Any:
    """Return a value JSON accepts, for a value inside some containers (by ``id``)."""
    inside = (*around, id(value))
    if isinstance(value, dict | list | tuple):
        if id(value) in around or len(around) > _DEEPEST:
            return shown(value)
        if isinstance(value, dict):
            return {_able_key(key): _able(item, inside) for key, item in value.items()}
        return [_able(item, inside) for item in value]
    try:
        json.dumps(value, default=text_of)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
    return value


def _able_key(key: Any) -> Any:
    try:
        json.dumps({key: None})
    except (TypeError, ValueError):
        return text_of(key)
    return key
