"""What user code raises, and returns by mistake: only its tuple fails, with a text that says why.

There may be very many: where a database is away, every tuple fails.
"""

import asyncio
import inspect
import traceback
from types import CodeType
from typing import Any, final

from sparkstorm.credentials import masked

__all__ = ["USER_ERRORS", "Tracebacks", "message_of", "refuse_result"]

USER_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""What fails a tuple. ``sys.exit`` in a library is no reason to end the process of all others; an
interrupt from outside is."""

_MAX_CHARS = 8000
"""A longer text keeps its end, where the error stands."""

_MAX_MESSAGE_CHARS = 2000
"""A longer message keeps its beginning."""


@final
class Tracebacks:
    """Formats errors as Python does; those that come the same way share the work.

    Reading the lines of source of 25 calls takes a millisecond, looking them up a hundredth of it.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print(Tracebacks().text(error))
    Traceback (most recent call last):
      File ...
    ZeroDivisionError: division by zero
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[CodeType, int], ...], str] = {}

    def text(self, error: BaseException) -> str:
        """Return what Python prints for an error."""
        if _is_plain(error):
            text = self._stack(error) + "".join(traceback.format_exception_only(error))
        else:
            text = "".join(traceback.format_exception(error))
        return masked(text)[-_MAX_CHARS:]

    def _stack(self, error: BaseException) -> str:
        if error.__traceback__ is None:  # it was never raised
            return ""
        way = tuple((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
        text = self._known.get(way)
        if text is None:
            lines = traceback.format_tb(error.__traceback__)
            text = self._known[way] = "".join(["Traceback (most recent call last):\n", *lines])
        return text


def message_of(error: BaseException) -> str:
    """Return the type and the text of an error, in so many characters that people can read them.

    >>> message_of(ValueError("17 is odd")), message_of(ValueError())
    ('ValueError: 17 is odd', 'ValueError')
    """
    try:
        text = masked(str(error))
    except Exception:  # noqa: BLE001 - it is user code, too
        text = "<exception str() failed>"
    if len(text) > _MAX_MESSAGE_CHARS:
        text = f"{text[:_MAX_MESSAGE_CHARS]}… ({len(text):,} characters)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def refuse_result(result: Any) -> None:
    """Raise if what ``execute`` returned is work that nobody would do; other results are ignored.

    Raises:
        TypeError: it is a coroutine, or something else to be awaited.
    """
    if not inspect.isawaitable(result):
        return
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that nobody has awaited it
    raise TypeError(
        f"execute returned a {type(result).__name__}, which nobody awaits: declare execute itself "
        f"with async def"
    )


def _is_plain(error: BaseException) -> bool:
    """Whether nothing but its own way to here is told of it."""
    hidden = error.__context__ is None or error.__suppress_context__
    return error.__cause__ is None and hidden and not isinstance(error, BaseExceptionGroup)
