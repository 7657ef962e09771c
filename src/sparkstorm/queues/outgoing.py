"""From a tuple to the body of the message that is sent of it (on an executor)."""

from collections.abc import Callable
from typing import Any, TypeAlias, final

from sparkstorm.formats import Format, Writer, writer_of
from sparkstorm.tuples import Tuple

__all__ = ["BodyMaker", "Selector", "selected"]

Selector: TypeAlias = str | Callable[[Tuple], Any]
"""The name of a field, or a function of the tuple."""


def selected(selector: Selector, tup: Tuple) -> Any:
    """Return a field of a tuple, or the result of a function of the tuple."""
    return selector(tup) if callable(selector) else tup[selector]


@final
class BodyMaker:
    """Makes bodies of tuples; an error fails the tuple alone.

    Args:
        selector: the field that is written, or a function of the tuple.
        how: ``"bytes"``, ``"string"``, ``"json"``, or a function that returns bytes.
        most_bytes: the length of the longest body that the system takes.

    Raises:
        ConfigError: there is no such format.
    """

    def __init__(self, selector: Selector, how: Format | Writer, most_bytes: int) -> None:
        self._selector = selector
        self._write = writer_of(how)
        self._most_bytes = most_bytes

    def body(self, tup: Tuple) -> bytes:
        """Return the body of a tuple's message.

        Raises:
            TypeError: the format does not fit the value, or the value is None.
            ValueError: the body is too long.
        """
        body = self._write(selected(self._selector, tup))
        if body is None:
            raise TypeError("there is no body: the value is None")
        if len(body) > self._most_bytes:
            raise ValueError(
                f"a body of {len(body):,} bytes is too long: {self._most_bytes:,} are allowed"
            )
        return body
