"""Clients of a running driver: they find it by the registry, and ask over its socket."""

import json
import socket
from functools import cache
from typing import Any, cast, final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from sparkstorm import errors
from sparkstorm._version import __version__
from sparkstorm.control.control import Control
from sparkstorm.control.registry import Entry
from sparkstorm.control.server import METHODS

__all__ = ["DriverGoneError", "connect"]

_WAIT_SECS = 30.0


class DriverGoneError(errors.WorldError):
    """The driver does not answer any more: it has ended, or was killed."""


def connect(entry: Entry, wait_secs: float = _WAIT_SECS) -> Control:
    """Return the control of a running topology; each call asks its driver.

    Args:
        entry: the topology in the registry.
        wait_secs: how long an answer may take.
    """
    return cast(Control, _Remote(entry, wait_secs))


@final
class _Remote:
    """Turns calls of the methods of :class:`Control` into requests."""

    def __init__(self, entry: Entry, wait_secs: float) -> None:
        self._entry = entry
        self._wait_secs = wait_secs

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        names = _positional(name)

        def ask(*values: Any, **arguments: Any) -> Any:
            return self._ask(name, {**dict(zip(names, values, strict=False)), **arguments})

        return ask

    def _ask(self, method: str, arguments: dict[str, Any]) -> Any:
        request = json.dumps({"method": method, "arguments": arguments}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._wait_secs)
                connection.connect(self._entry.socket)
                connection.sendall(request)
                answer = connection.makefile("rb").readline()
        except TimeoutError as error:
            raise DriverGoneError(
                f"topology {self._entry.name!r} has not answered for {self._wait_secs:g} s "
                f"(pid {self._entry.holder.pid})"
            ) from error
        except OSError as error:
            raise DriverGoneError(self._gone()) from error
        if not answer.endswith(b"\n"):
            raise DriverGoneError(self._gone())
        return _result(method, json.loads(answer))

    def _gone(self) -> str:
        return (
            f"topology {self._entry.name!r} does not answer: its driver "
            f"(pid {self._entry.holder.pid}) has ended"
        )


@cache
def _adapter(method: str) -> TypeAdapter[Any]:
    """Return the form of a method's answer; making one takes longer than the question."""
    return TypeAdapter(get_type_hints(getattr(Control, method))["return"])


def _positional(method: str) -> list[str]:
    function = getattr(Control, method)
    return list(function.__code__.co_varnames[1 : function.__code__.co_argcount])


def _result(method: str, answer: dict[str, Any]) -> Any:
    if "error" in answer:
        kind = getattr(errors, answer.get("kind", ""), errors.InternalError)
        if isinstance(kind, type) and issubclass(kind, errors.SparkstormError):
            raise kind(answer["error"])
        raise errors.InternalError(answer["error"])
    try:
        return _adapter(method).validate_python(answer["result"])
    except ValidationError as error:
        raise errors.EnvironmentFault(
            f"the driver answers {method!r} in another form: it runs another version of "
            f"sparkstorm than this one ({__version__}). Ask with the driver's own installation"
        ) from error
