"""Methods of a user that the engine cannot call, or whose body would never run.

A method with a yield, or an async one, runs nothing when it is called. It returns an object that
does the work when somebody iterates over it or awaits it, and the engine does neither. So the work
would silently not be done.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from types import FunctionType, UnionType
from typing import Any, Union, get_args, get_origin

from sparkstorm.components.functions import called_function, fits, names_of, signature_of

__all__ = ["lazy_methods", "misfit_methods"]

_EMITTING = {"execute", "execute_window", "finish_batch", "next_tuple"}
"""The methods in which a user may think of yield as a way to emit."""

_ITERABLE = {Iterable, Iterator, Sequence, list}
"""The results that the engine iterates over, so a generator will do."""


def lazy_methods(given: object) -> Iterator[str]:
    """Yield a sentence for each public method of ours that a user's object overrides so.

    >>> class Lazy:
    ...     __module__ = "sparkstorm.example"
    ...     def ack(self, msg_id: object) -> None:
    ...         "Called when a message is done."
    >>> class Mine(Lazy):
    ...     async def ack(self, msg_id: object) -> None:
    ...         "Never runs."
    >>> list(lazy_methods(Mine()))
    ["ack is async: only a bolt's execute may be"]
    """
    for name, promised in sorted(_promises(type(given)).items()):
        function = called_function(inspect.getattr_static(given, name))
        results = _results(promised)
        is_generator = inspect.isgeneratorfunction(function) and not results & _ITERABLE
        if is_generator or inspect.isasyncgenfunction(function):
            yield f"{name} has a yield, so a call of it does nothing. {_instead(name, results)}"
        elif inspect.iscoroutinefunction(function) and Awaitable not in results:
            yield f"{name} is async: only a bolt's execute may be"


def misfit_methods(given: object) -> Iterator[str]:
    """Yield a sentence for each public method of ours that a user overrides with other parameters.

    >>> class Base:
    ...     __module__ = "sparkstorm.example"
    ...     def execute(self, tup, collector):
    ...         "Called with each tuple."
    >>> class Mine(Base):
    ...     __module__ = "mine"
    ...     def execute(self, tup):
    ...         "Lacks the collector."
    >>> list(misfit_methods(Mine()))
    ['execute takes (tup), but is called with (tup, collector)']
    """
    for name, promised in sorted(_promises(type(given)).items()):
        found = inspect.getattr_static(given, name)
        if found is promised or isinstance(found, property):  # asking a property would run it
            continue
        takes = signature_of(getattr(given, name, None))
        called = signature_of(promised.__get__(given))
        if takes is not None and called is not None and not fits(called, takes):
            yield f"{name} takes {names_of(takes)}, but is called with {names_of(called)}"


def _promises(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods of a class that are ours, each as the nearest class has it."""
    found: dict[str, Callable[..., Any]] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "sparkstorm":
            found |= {
                name: method
                for name, method in vars(base).items()
                if isinstance(method, FunctionType) and not name.startswith("_")
            }
    return found


def _results(promised: Callable[..., Any]) -> set[Any]:
    """Return the types that a method of ours promises, without their arguments."""
    annotation = inspect.signature(promised).return_annotation
    parts = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else [annotation]
    return {get_origin(part) or part for part in parts}


def _instead(name: str, results: set[Any]) -> str:
    if name in _EMITTING:
        return "Emit with collector.emit([…]) instead"
    if results == {None}:
        return "Do the work in the method itself"
    return "Return the result instead"
