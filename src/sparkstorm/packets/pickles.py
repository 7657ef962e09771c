"""Pickles of many values: which of them may not be readable, and how to read what is left."""

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
"""Types whose pickles can always be read again. The pickler looks functions up by itself."""

_INHERITED = (
    "__getattribute__",
    "__getstate__",
    "__new__",
    "__reduce__",
    "__reduce_ex__",
    "__setattr__",
)
_ABSENT = ("__getattr__", "__getnewargs__", "__getnewargs_ex__", "__setstate__")
"""What a class has of ``object``, and what it has not, if its objects are read without its code."""


@final
class NotingPickler(pickle.Pickler):
    """Notes which types it pickles, but for built-in values and containers: those cost nothing."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kinds: set[type] = set()

    def reducer_override(self, obj: Any) -> Any:
        """Note the type; what to do with the object stays as it is."""
        self._kinds.add(type(obj))
        return NotImplemented

    @property
    def is_safe(self) -> bool:
        """Whether all that was pickled can be read again, as far as can be told without trying."""
        return all(map(_is_safe, self._kinds))


def _is_safe(kind: type) -> bool:
    """Whether no code of the user's runs as a value of this type is read."""
    if kind in _SAFE or str(kind.__module__).partition(".")[0] == "numpy":
        return True
    if kind in copyreg.dispatch_table:
        return False
    if issubclass(kind, type):
        return True  # a class is looked up by its name, which the pickler has tried
    inherits = all(getattr(kind, name) == getattr(object, name) for name in _INHERITED)
    return inherits and not any(hasattr(kind, name) for name in _ABSENT)


@final
@dataclass(frozen=True, slots=True)
class Unread:
    """Stands for a value that cannot be read, with the reason."""

    why: str


def load_each(data: bytes | memoryview) -> list[Any]:
    """Read a pickled list value by value, with an :class:`Unread` for each that cannot be read.

    Slow, and only for lists pickled without references, as :func:`pickled` does if it can: of
    others, those values that refer to an earlier one are not read.
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
    """A pickle without its frames, which are longer than one value."""
    kept, start = [], 0
    for opcode, _, at in pickletools.genops(data):
        if opcode.name == "FRAME":
            kept.append(data[start : at or 0])
            start = (at or 0) + _FRAME_BYTES
    return b"".join([*kept, data[start:]])


_FRAME_BYTES = 9


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut the pickle of a list where its items begin.

    The interpreter's stack is followed: an item begins with the last step that finds just the items
    before it there, since nothing that it is built of ever goes below it.
    """
    stack: list[bool] = []  # whether it is a mark
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
    """Do to the stack what a step does."""
    taken: Iterable[Any] = opcode.stack_before
    if pickletools.markobject in opcode.stack_before:
        while not stack.pop():
            pass
        taken = opcode.stack_before[: opcode.stack_before.index(pickletools.markobject)]
    for _ in taken:
        stack.pop()
    stack.extend(kind is pickletools.markobject for kind in opcode.stack_after)
