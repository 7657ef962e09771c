"""Classes of a document: Python's by their path, Storm's where there is an equal one here."""

import importlib
from collections.abc import Callable
from typing import Any

from sparkstorm.errors import TopologyError
from sparkstorm.flux.wrappers import (
    LogInfoBolt,
    TestWordCounter,
    TestWordSpout,
    shell_bolt,
    shell_spout,
)
from sparkstorm.texts.user_errors import message_of, place_of

__all__ = ["KNOWN", "find_class", "is_unknown"]

_WRAPPERS = "org.apache.storm.flux.wrappers"
_STORMS: dict[str, Callable[..., Any]] = {
    f"{_WRAPPERS}.bolts.FluxShellBolt": shell_bolt,
    f"{_WRAPPERS}.bolts.LogInfoBolt": LogInfoBolt,
    f"{_WRAPPERS}.spouts.FluxShellSpout": shell_spout,
    "org.apache.storm.task.ShellBolt": shell_bolt,
    "org.apache.storm.spout.ShellSpout": shell_spout,
    "org.apache.storm.testing.TestWordCounter": TestWordCounter,
    "org.apache.storm.testing.TestWordSpout": TestWordSpout,
    "org.apache.storm.tuple.Fields": list,
    "java.util.ArrayList": list,
    "java.lang.String": str,
    "java.lang.Integer": int,
    "java.lang.Long": int,
}

KNOWN = tuple(sorted({name.rpartition(".")[2] for name in _STORMS if "storm" in name}))
"""The names of Storm's classes that have an equal one here, without their packages."""


def is_unknown(name: str) -> bool:
    """Whether a class is neither Python's nor known."""
    if name in _STORMS:
        return False
    try:
        find_class(name)
    except ImportError:
        return True
    return False


def find_class(name: str) -> Callable[..., Any]:
    """Return the class of a name: ``module:Class``, ``package.module.Class``, or one of Storm's.

    Raises:
        ImportError: there is no such class.
        TopologyError: the module raised.
    """
    if name in _STORMS:
        return _STORMS[name]
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    found: Any = _module(module or "builtins", name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ImportError(f"{module} has no {attribute}")
        found = getattr(found, part)
    if not callable(found):
        raise ImportError(f"{name} is no class")
    made: Callable[..., Any] = found
    return made


def _module(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # The module itself, or a package of it, is missing: not another that the module imports.
        if f"{module}.".startswith(f"{error.name}."):
            raise ImportError(str(error)) from None
        cause: BaseException = error
    except ValueError as error:  # an empty name, or a relative one
        raise ImportError(str(error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's module
        cause = error
    raise TopologyError(
        f"{name!r} could not be loaded: {message_of(cause)}{place_of(cause)}"
    ) from cause
