"""The classes of the user's own file, for workers that cannot import it.

cloudpickle takes the components there, classes and all. What they emit or keep is pickled too, but
as usual: a value names its class, and who reads it looks there. So the classes travel with the
plan, and a worker puts each where its name says.
"""

import sys
from collections.abc import Iterable
from types import ModuleType

import cloudpickle

__all__ = ["install", "own_classes"]

_LARGEST_BYTES = 1024 * 1024
"""A class that takes more drags other things along, and is no class of values."""


def own_classes() -> list[type]:
    """Return the classes of the script that runs, and of files that were loaded as topologies."""
    modules = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    return [
        value
        for name in sorted(modules & sys.modules.keys())
        for value in vars(sys.modules[name]).values()
        if isinstance(value, type) and value.__module__ == name and _travels(value)
    ]


def install(classes: Iterable[type]) -> None:
    """Let values name these classes, in this process: called by a worker, with those it was sent.

    >>> from pickle import dumps, loads
    >>> Order = type("Order", (), {"__module__": "not_here"})
    >>> install([Order])
    >>> isinstance(loads(dumps(Order())), Order)
    True
    """
    for value in classes:
        name = value.__module__
        setattr(sys.modules.setdefault(name, ModuleType(name)), value.__name__, value)


def _travels(value: type) -> bool:
    try:
        return len(cloudpickle.dumps(value)) <= _LARGEST_BYTES
    except Exception:  # noqa: BLE001 - any error of whatever the user's class refers to
        return False
