"""Watched bolts: copies whose calls of user code go through a watcher, for debuggers and tests."""

import inspect
import secrets
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, final

import cloudpickle

from sparkstorm.components.bolt import AnyBolt

__all__ = ["Call", "Watcher", "watched"]

_METHODS = ("prepare", "init_state", "execute", "finish_batch")
"""The methods with user code that the engine calls."""

_BULK_WRITERS = "sparkstorm.bolts.bulk_writer"
"""The module of the bolts whose user code is in ``write``."""

_CLASSES: "dict[str, type[AnyBolt]]" = {}
"""The classes of watched bolts in this process, by a key that travels with the bolts' pickles."""


@final
class Call:
    """One call of a bolt's method.

    Attributes:
        bolt: the bolt.
        method: the name of the method.
        arguments: the arguments.
    """

    __slots__ = ("_function", "arguments", "bolt", "method")

    def __init__(
        self, bolt: AnyBolt, method: str, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        self.bolt = bolt
        self.method = method
        self.arguments = arguments
        self._function = function

    @property
    def component(self) -> str:
        """The bolt's id."""
        return self.bolt.context.component

    @property
    def task(self) -> int:
        """The number of the bolt's task."""
        return self.bolt.context.task

    def bound(self) -> Callable[..., Any]:
        """Return the user's method, to be called with the arguments."""
        return self._function.__get__(self.bolt)  # type: ignore[no-any-return]


class Watcher(Protocol):
    """Stands between the engine and the user code of bolts."""

    def call(self, call: Call) -> Any:
        """Make a call, and return its result or raise its error."""
        ...

    async def await_call(self, call: Call) -> Any:
        """Make the call of an ``async def execute``."""
        ...


@contextmanager
def watched(bolt: AnyBolt, watcher: Watcher) -> Iterator[AnyBolt]:
    """Give a copy of a bolt whose own copies in tasks are watched; the bolt itself is not changed.

    A subclass and not an attribute of the bolt: the engine compares the attributes of bolts.
    """
    key, data = secrets.token_hex(8), cloudpickle.dumps(bolt)
    _CLASSES[key] = _watched_class(type(bolt), watcher, key, data)
    try:
        yield _revive(key, data)
    finally:
        del _CLASSES[key]


def _watched_class(kind: type[AnyBolt], watcher: Watcher, key: str, data: bytes) -> type[AnyBolt]:
    content: dict[str, Any] = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__reduce_ex__": lambda _self, _protocol: (_revive, (key, data)),
    }
    is_writer = any(base.__module__ == _BULK_WRITERS for base in kind.__mro__)
    for method in (*_METHODS, "write") if is_writer else _METHODS:
        function = getattr(kind, method, None)
        if inspect.iscoroutinefunction(function):
            content[method] = _awaiting(method, function, watcher)
        elif inspect.isfunction(function):
            content[method] = _calling(method, function, watcher)
    made: type[AnyBolt] = types.new_class(kind.__name__, (kind,), exec_body=_filled(content))
    return made


def _filled(content: Mapping[str, Any]) -> Callable[[dict[str, Any]], None]:
    return lambda namespace: namespace.update(content)


def _calling(method: str, function: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    def through(self: AnyBolt, *arguments: Any) -> Any:
        return watcher.call(Call(self, method, function, arguments))

    return through


def _awaiting(method: str, function: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    async def through(self: AnyBolt, *arguments: Any) -> Any:
        return await watcher.await_call(Call(self, method, function, arguments))

    return through


def _revive(key: str, data: bytes) -> AnyBolt:
    bolt: AnyBolt = cloudpickle.loads(data)
    bolt.__class__ = _CLASSES[key]
    return bolt
