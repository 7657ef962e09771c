"""The text of errors, for very many of them: where a database is away, every tuple fails."""

import traceback
from types import CodeType
from typing import final

__all__ = ["Tracebacks"]

_MAX_CHARS = 8000
"""A longer text keeps its end, where the error stands."""


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
        return text[-_MAX_CHARS:]

    def _stack(self, error: BaseException) -> str:
        if error.__traceback__ is None:  # it was never raised
            return ""
        way = tuple((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
        text = self._known.get(way)
        if text is None:
            lines = traceback.format_tb(error.__traceback__)
            text = self._known[way] = "".join(["Traceback (most recent call last):\n", *lines])
        return text


def _is_plain(error: BaseException) -> bool:
    """Whether nothing but its own way to here is told of it."""
    hidden = error.__context__ is None or error.__suppress_context__
    return error.__cause__ is None and hidden and not isinstance(error, BaseExceptionGroup)
