"""Errors of user code: only the tuple fails, with a text that says why.

There may be very many errors: when a database is away, every tuple fails.
"""

import asyncio
import re
import traceback
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator
from pathlib import Path
from types import CodeType
from typing import Any, final

from sparkstorm.errors import ComponentError, EmitError
from sparkstorm.texts.credentials import masked
from sparkstorm.texts.showing import shown

__all__ = [
    "USER_ERRORS",
    "Tracebacks",
    "is_mistake",
    "is_of_call",
    "is_of_value",
    "message_of",
    "place_of",
    "reason_of",
    "refuse_result",
    "refuse_work",
    "users_line",
    "words_of",
]

USER_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""The errors that fail a tuple. ``sys.exit`` in a library must not end a process shared with
others; an interrupt from outside must."""

_OURS = (
    "sparkstorm.packets.",
    "sparkstorm.state.",
    "sparkstorm.tasks.",
    "sparkstorm.components.",
    "sparkstorm.tuples",
)
"""The modules that user code calls, and the modules that call user code."""

_REFUSALS = (TypeError, ValueError, LookupError, AttributeError)
"""The errors with which our own methods refuse a wrong use."""

_WRONG_CALL = re.compile(r"[\w.<>]+\(\) (takes|missing|got an unexpected|got multiple|got some) ")
"""The texts with which Python refuses a call before the called function begins."""

_MAX_CHARS = 8000
"""A longer text keeps its end, with the error itself."""

_OUR_FILES = ('File "sparkstorm/', f'File "{Path(__file__).parents[1]}/')
"""The begin of a traceback's line in a compiled module of ours, and in any other."""

_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", 'File "<frozen ')
"""Parts of the lines that are in a library."""

_MAX_MESSAGE_CHARS = 2000
"""A longer message keeps its beginning."""


@final
class Tracebacks:
    """Formats errors as Python does; errors raised along the same calls share the work.

    Reading the source lines of 25 calls takes a millisecond; a look-up takes a hundredth of that.

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
        """Return Python's text of an error, or no text if the error cannot be asked."""
        try:
            if _is_plain(error):
                text = self._stack(error) + "".join(traceback.format_exception_only(error))
            else:
                text = "".join(traceback.format_exception(error))
        except BaseException:  # noqa: BLE001 - its properties are user code, too
            return ""
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


def users_line(trace: str) -> str:
    """Return the last line of a traceback in the user's own files, or else in a library.

    >>> users_line('''Traceback (most recent call last):
    ...   File "/home/me/count.py", line 7, in execute
    ...     json.loads(tup[0])
    ...   File "/usr/lib/python3.12/json/__init__.py", line 346, in loads
    ...     return _default_decoder.decode(s)
    ... ValueError: no JSON''')
    'File "/home/me/count.py", line 7, in execute'
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    others = [line for line in lines if not any(part in line for part in _OUR_FILES)]
    own = [line for line in others if not any(part in line for part in _LIBRARIES)]
    return (own or others or [""])[-1]


def place_of(error: BaseException) -> str:
    """Return the user's line that raised an error, in parentheses behind a space, or no text."""
    where = users_line("".join(traceback.format_tb(error.__traceback__)))
    return f" ({where})" if where else ""


def message_of(error: BaseException) -> str:
    """Return the type and the text of an error, cut to a readable length.

    >>> message_of(ValueError("17 is odd")), message_of(ValueError())
    ('ValueError: 17 is odd', 'ValueError')
    """
    text, kind = _text(error), type(error).__name__
    return f"{kind}: {text}" if text else kind


def words_of(error: BaseException) -> str:
    """Return the text of an error, or its type if the text is empty.

    >>> words_of(ValueError("17 is odd")), words_of(ValueError())
    ('17 is odd', 'ValueError')
    """
    return _text(error) or type(error).__name__


def reason_of(value: object) -> str:
    """Return any object a user has given as a reason as text: an error, a number, a list.

    >>> reason_of("away"), reason_of(ValueError("17 is odd")), reason_of(None), reason_of([1])
    ('away', 'ValueError: 17 is odd', 'None', '[1]')
    """
    if issubclass(type(value), BaseException):
        return message_of(value)  # type: ignore[arg-type]
    try:
        return _cut("".join(("", str(value))))
    except BaseException:  # noqa: BLE001 - as above
        return shown(value)


def refuse_result(result: Any, method: str = "execute") -> None:
    """Raise if a method returned something: nobody would use the result.

    Raises:
        EmitError: the result is not None.
    """
    if result is None:
        return
    refuse_work(result, method)
    raise EmitError(
        f"{method} returned {shown(result)}, which nobody uses: emit with the collector instead of "
        f"return"
    )


def refuse_work(result: Any, method: str) -> None:
    """Raise if a method returned work instead of doing it: nobody would do the work.

    Any other result of a method without one does no harm, and is dropped.

    Raises:
        EmitError: the result is a generator, a coroutine or anything else to be awaited.
    """
    kind = type(result)
    if result is None or not issubclass(kind, Generator | AsyncGenerator | Awaitable):
        return
    if issubclass(kind, Coroutine):
        result.close()  # else Python warns about a coroutine without an await
    if issubclass(kind, Generator | AsyncGenerator):
        why = "which nobody runs: emit with the collector instead of yield"
    elif method == "execute":
        why = "which nobody awaits: declare execute itself with async def"
    else:
        why = "which nobody awaits: only execute may be async"
    raise EmitError(f"{method} returned a {kind.__name__}, {why}")


def is_mistake(error: BaseException) -> bool:
    """Whether an error is a mistake in the program, so that another try is of no use.

    Mistakes are a wrong use of our own methods, which they refuse, names that do not exist, and
    calls with arguments that a function does not take.
    Other errors of user code may be the world's, even an AttributeError of another object: a
    connection that is away is often None.
    """
    if isinstance(error, ComponentError | NameError | ImportError | NotImplementedError):
        return True
    # A name that a collector, a tuple or the user's own component does not have.
    if isinstance(error, AttributeError) and _is_ours(error.obj):
        return True
    # Python itself refuses such a call, in the frame of the caller.
    if isinstance(error, TypeError) and _WRONG_CALL.match(_text(error)):
        return True
    return isinstance(error, _REFUSALS) and (_ours(error) or [False])[-1]


def is_of_value(error: BaseException) -> bool:
    """Whether an error came out of a value's own methods, called by the engine.

    Every ordinary error counts. An interrupt counts unless the engine's own code raised it.
    """
    return isinstance(error, USER_ERRORS) or not (_ours(error) or [True])[-1]


def is_of_call(error: BaseException) -> bool:
    """Whether an error is the fault of one tuple: a user's error, or raised by a value's methods.

    Values may raise anything when a collector or the state looks at them. If ``execute`` itself
    raises an interrupt, such as a ``KeyboardInterrupt``, the process ends.
    """
    if isinstance(error, USER_ERRORS):
        return True
    ours = _ours(error)
    return False in ours and not ours[-1] and True in ours[ours.index(False) :]


def _is_ours(thing: object) -> bool:
    """Whether an object's class is ours, or a user's component."""
    return any(base.__module__.startswith(_OURS) for base in type(thing).__mro__)


def _ours(error: BaseException) -> list[bool]:
    """Return for each call on an error's way whether it is ours; the last call raised the error."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return [str(frame.f_globals.get("__name__")).startswith(_OURS) for frame in frames]


def _text(error: BaseException) -> str:
    try:
        # join makes a plain str, even of a user's subclass of str.
        return _cut("".join(("", str(error))))
    except BaseException:  # noqa: BLE001 - it is user code, too
        return "<exception str() failed>"


def _cut(text: str) -> str:
    text = masked(text)
    if len(text) <= _MAX_MESSAGE_CHARS:
        return text
    return f"{text[:_MAX_MESSAGE_CHARS]}… ({len(text):,} characters)"


def _is_plain(error: BaseException) -> bool:
    """Whether Python prints only the error itself, without causes or groups."""
    hidden = error.__context__ is None or error.__suppress_context__
    return error.__cause__ is None and hidden and not isinstance(error, BaseExceptionGroup)
