"""The loggers of sparkstorm: foreign text in a record cannot forge lines or hide.

A reader of the log sees one line for each record, and below it, indented, a traceback.
"""

import logging
import traceback
from collections.abc import Mapping
from typing import final

from sparkstorm.texts.showing import indented, shown, text_of, visible

__all__ = ["logger_of"]


def logger_of(name: str) -> logging.Logger:
    """Return the logger of a name; it shows foreign text safely.

    Give a traceback as text by ``extra={"trace": …}``.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_SHOW)
    return logger


@final
class _Shown:
    """An argument of a record, in readable form."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return visible(text_of(self._value))

    def __repr__(self) -> str:
        return shown(self._value)


def _show(record: logging.LogRecord) -> bool:
    """Make a record safe, before any handler sees it."""
    if isinstance(record.args, Mapping):
        record.args = {name: _argument(value) for name, value in record.args.items()}
    elif record.args:
        record.args = tuple(map(_argument, record.args))
    else:
        record.msg = visible(text_of(record.msg))
    trace = str(getattr(record, "trace", ""))
    if record.exc_info and not record.exc_text:
        trace = "".join(traceback.format_exception(*record.exc_info))
    if trace:
        record.exc_text = indented(trace)
    return True


_SHOW = _show
"""One object, so that a logger adds the filter only once."""


def _argument(value: object) -> object:
    return value if isinstance(value, int | float) else _Shown(value)
