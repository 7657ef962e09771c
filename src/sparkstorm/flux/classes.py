"""Classes of a document: Python's by their path, Storm's where there is an equal one here."""

import importlib
from collections.abc import Callable
from typing import Any

from sparkstorm.errors import TopologyError
from sparkstorm.flux.wrappers import LogInfoBolt, shell_bolt, shell_spout

__all__ = ["find_class", "is_unknown"]

_WRAPPERS = "org.apache.storm.flux.wrappers"
_STORMS: dict[str, Callable[..., Any]] = {
    f"{_WRAPPERS}.bolts.FluxShellBolt": shell_bolt,
    f"{_WRAPPERS}.bolts.LogInfoBolt": LogInfoBolt,
    f"{_WRAPPERS}.spouts.FluxShellSpout": shell_spout,
    "org.apache.storm.task.ShellBolt": shell_bolt,
    "org.apache.storm.spout.ShellSpout": shell_spout,
    "java.util.ArrayList": list,
    "java.lang.String": str,
    "java.lang.Integer": int,
    "java.lang.Long": int,
}


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
    try:
        found: Any = importlib.import_module(module or "builtins")
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ImportError(str(error)) from None
    except Exception as error:
        raise TopologyError(
            f"{name!r} could not be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ImportError(f"{name} is no class")
    made: Callable[..., Any] = found
    return made
