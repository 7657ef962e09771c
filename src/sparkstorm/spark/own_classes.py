"""Classes of the user's script, for workers without access to the script.

cloudpickle sends components with their classes. Emitted and kept values are pickled by plain
pickle, which only names a class and its module. So the driver sends the classes with the plan, and
each worker puts them into a module of the right name.
"""

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from types import ModuleType

import cloudpickle

__all__ = ["install", "own_classes"]

_LARGEST_BYTES = 1024 * 1024
"""Beyond this size a class refers to large data, and is hardly a class of values."""


def own_classes() -> list[type]:
    """Return the classes of the running script, and of files that were loaded as topologies."""
    modules = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    return [
        value
        for name in sorted(modules & sys.modules.keys())
        for value in vars(sys.modules[name]).values()
        if isinstance(value, type) and value.__module__ == name and _travels(value)
    ]


def install(classes: Iterable[type]) -> None:
    """Make classes known in this process under their modules' names. A worker calls this function.

    >>> from pickle import dumps, loads
    >>> Order = type("Order", (), {"__module__": "not.here"})
    >>> install([Order])
    >>> isinstance(loads(dumps(Order())), Order)
    True
    """
    for value in classes:
        name = value.__module__
        package = name.partition(".")[0]
        if package not in sys.modules and find_spec(package) is None:
            sys.modules[package] = ModuleType(package)  # pickle imports it before the module
        setattr(sys.modules.setdefault(name, ModuleType(name)), value.__name__, value)


def _travels(value: type) -> bool:
    try:
        return len(cloudpickle.dumps(value)) <= _LARGEST_BYTES
    except Exception:  # noqa: BLE001 - any error of whatever the user's class refers to
        return False
