"""The failing call: finds the call of user code in which a message fails."""

from collections import Counter
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, final

from sparkstorm.local.watching import Call
from sparkstorm.packets.inbox import FAILED, PacketOrigin
from sparkstorm.tuples import Tuple

__all__ = ["ANY_TASK", "CallCounter", "CallPlace", "FailingCall"]

ANY_TASK = -1
"""Stands for any task of a component."""


@final
@dataclass(frozen=True, slots=True)
class CallPlace:
    """The place of a call in a run: the same in a repeated run.

    Attributes:
        component: the bolt's id.
        task: the number of its task, or :data:`ANY_TASK`.
        method: the method.
        number: which call of the method by this task, from 0.
    """

    component: str
    task: int
    method: str
    number: int

    def holds(self, place: "CallPlace") -> bool:
        """Whether a call at another place is a call at this one."""
        return place == (replace(self, task=place.task) if self.task == ANY_TASK else self)


@final
class CallCounter:
    """Numbers the calls of a run."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def place(self, call: Call) -> CallPlace:
        """Return the place of the call that begins now."""
        key = (call.component, call.task, call.method)
        self._counts[key] += 1
        return CallPlace(*key, self._counts[key] - 1)


@final
class FailingCall:
    """A watcher that remembers the first call that raised, or failed its own tuple.

    Args:
        writes: whether bulk writers write. If not, their ``write`` is only noted, as if it failed.

    Attributes:
        place: the call; None if all calls went well.
        first: the first call of each component's ``execute``.
    """

    def __init__(self, *, writes: bool = True) -> None:
        self.place: CallPlace | None = None
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None
        self.first: dict[str, CallPlace] = {}
        self._writes = writes
        self._counter = CallCounter()

    @property
    def error(self) -> BaseException | None:
        """The error of the call; the engine's frames are none of its traceback."""
        return self._error and self._error.with_traceback(self._trace)

    def call(self, call: Call) -> Any:
        """Make a call."""
        __tracebackhide__ = True
        place = self._begin(call)
        if call.method == "write" and not self._writes:
            self.place = self.place or place
            return None
        try:
            result = call.bound()(*call.arguments)
        except BaseException as error:
            self._raised(place, error)
            raise
        self._check(place, call)
        return result

    async def await_call(self, call: Call) -> Any:
        """Make the call of an ``async def execute``."""
        __tracebackhide__ = True
        place = self._begin(call)
        try:
            result = await call.bound()(*call.arguments)
        except BaseException as error:
            self._raised(place, error)
            raise
        self._check(place, call)
        return result

    def _begin(self, call: Call) -> CallPlace:
        place = self._counter.place(call)
        if call.method == "execute":
            self.first.setdefault(call.component, place)
        return place

    def _raised(self, place: CallPlace, error: BaseException) -> None:
        if self.place is None:
            trace = error.__traceback__
            self._trace = trace and trace.tb_next
            self.place, self._error = place, error

    def _check(self, place: CallPlace, call: Call) -> None:
        if self.place is None and call.method == "execute" and _has_failed(call.arguments[0]):
            self.place = place


def _has_failed(tup: Tuple) -> bool:
    origin: Any = tup._origin  # noqa: SLF001
    return isinstance(origin, PacketOrigin) and origin.inbox.status[tup._index] == FAILED  # noqa: SLF001
