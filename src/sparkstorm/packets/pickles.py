"""Pickles of many values: find values that may be unreadable, and read the others without them."""

import copyreg
import datetime
import decimal
import pickle
import pickletools
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType
from typing import Any, final

from sparkstorm.texts.user_errors import is_of_value, message_of

__all__ = ["NotingPickler", "Unread", "load_each"]

_SAFE = frozenset(
    {
        BuiltinFunctionType,
        FunctionType,
        complex,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
        decimal.Decimal,
        uuid.UUID,
    }
)
"""Types whose pickles can always be read. The pickler itself looks functions up."""

_INHERITED = (
    "__getattribute__",
    "__getstate__",
    "__new__",
    "__reduce__",
    "__reduce_ex__",
    "__setattr__",
)
_ABSENT = ("__getattr__", "__getnewargs__", "__getnewargs_ex__", "__setstate__")
"""A class whose objects are read without its code has ``object``'s ``_INHERITED``, and none of
``_ABSENT``."""


@final
class NotingPickler(pickle.Pickler):
    """Notes the types in a pickle, without built-in values and containers: those cost nothing."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kinds: set[type] = set()

    def reducer_override(self, obj: Any) -> Any:
        """Note the type, and let the pickler go on as usual."""
        self._kinds.add(type(obj))
        return NotImplemented

    @property
    def is_safe(self) -> bool:
        """Whether reading the pickle back cannot run code of the user's."""
        return all(map(_is_safe, self._kinds))


def _is_safe(kind: type) -> bool:
    """Whether reading a value of this type runs no code of the user's."""
    if kind in _SAFE or str(kind.__module__).partition(".")[0] == "numpy":
        return True
    if kind in copyreg.dispatch_table:
        return False
    if issubclass(kind, type):
        return True  # the pickler has already looked the class up by its name
    inherits = all(getattr(kind, name) == getattr(object, name) for name in _INHERITED)
    return inherits and not any(hasattr(kind, name) for name in _ABSENT)


@final
@dataclass(frozen=True, slots=True)
class Unread:
    """Stands for an unreadable value, with the reason."""

    why: str


def load_each(data: bytes | memoryview) -> list[Any]:
    """Read a pickled list value by value, with an :class:`Unread` for each unreadable value.

    Slow. Only for lists pickled without references, as :func:`pickled` does if possible: in other
    lists a value that refers to an earlier value is unreadable.
    """
    return [_load(piece) for piece in _pieces(_unframed(bytes(data)))]


def _load(piece: bytes) -> Any:
    try:
        return pickle.loads(pickle.PROTO + b"\x05" + piece + pickle.STOP)  # noqa: S301
    except BaseException as error:  # of any user's class
        if not is_of_value(error):
            raise
        return Unread(message_of(error))


def _unframed(data: bytes) -> bytes:
    """Return a pickle without its frames, which are longer than a value."""
    kept, start = [], 0
    for opcode, _, at in pickletools.genops(data):
        if opcode.name == "FRAME":
            kept.append(data[start : at or 0])
            start = (at or 0) + _FRAME_BYTES
    return b"".join([*kept, data[start:]])


_FRAME_BYTES = 9


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut the pickle of a list at the beginnings of its items.

    The function follows the interpreter's stack. An item begins at the last step that finds only
    the earlier items on the stack: no part of an item ever goes below.
    """
    stack: list[bool] = []  # True for a mark
    starts: dict[int, int] = {}
    base = 0
    for opcode, _, at in pickletools.genops(data):
        if opcode.name in {"PROTO", "STOP"}:
            continue
        if len(stack) == 1:
            base = 2 if opcode.name == "MARK" else 1
        if at is not None and len(stack) >= base > 0:
            starts[len(stack) - base] = at
        count = len(stack) - base
        _step(stack, opcode)
        if len(stack) == 1 and base and at is not None:
            cuts = [*(starts[number] for number in range(count)), at]
            yield from (data[start:stop] for start, stop in pairwise(cuts))


def _step(stack: list[bool], opcode: pickletools.OpcodeInfo) -> None:
    """Apply a step of the pickle to the stack."""
    taken: Iterable[Any] = opcode.stack_before
    if pickletools.markobject in opcode.stack_before:
        while not stack.pop():
            pass
        taken = opcode.stack_before[: opcode.stack_before.index(pickletools.markobject)]
    for _ in taken:
        stack.pop()
    stack.extend(kind is pickletools.markobject for kind in opcode.stack_after)
