"""Functions that users give as arguments: a call has to do the work, with the arguments it gets."""

import inspect
from collections.abc import Sequence
from functools import partial, partialmethod
from types import FunctionType

from sparkstorm.errors import ConfigError

__all__ = [
    "called_function",
    "check_function",
    "fault_of_function",
    "fits",
    "is_async",
    "names_of",
    "signature_of",
]


def check_function(
    name: str, given: object, arguments: Sequence[str] = (), *, may_yield: bool = False
) -> None:
    """Raise if an argument is a function whose call would fail, or do nothing.

    Args:
        name: the name of the argument, for people.
        given: the argument; anything but a function is left alone.
        arguments: the names of the arguments that the engine calls the function with.
        may_yield: whether the engine iterates over the result.

    Raises:
        ConfigError: the function is async, has a yield, or takes other arguments.
    """
    fault = fault_of_function(name, given, arguments, may_yield=may_yield)
    if fault is not None:
        raise ConfigError(fault)


def fault_of_function(
    name: str, given: object, arguments: Sequence[str] = (), *, may_yield: bool = False
) -> str | None:
    """Return the sentence that :func:`check_function` raises, or None.

    >>> fault_of_function("key", lambda: b"k", ["tup"])
    'key takes (), but is called with (tup)'
    >>> fault_of_function("key", lambda tup: b"k", ["tup"])
    """
    if not callable(given):
        return None
    if is_async(given):
        return f"{name} is an async function, which nobody awaits: give a function with def"
    if inspect.isgeneratorfunction(called_function(given)) and not may_yield:
        return f"{name} has a yield, so a call of it does nothing: return the result instead"
    takes = signature_of(given)
    called = inspect.Signature(
        [inspect.Parameter(one, inspect.Parameter.POSITIONAL_OR_KEYWORD) for one in arguments]
    )
    if takes is not None and not fits(called, takes):
        return f"{name} takes {names_of(takes)}, but is called with {names_of(called)}"
    return None


def is_async(function: object) -> bool:
    """Whether a call of a function gives something to be awaited.

    >>> async def choose() -> None: ...
    >>> is_async(choose), is_async(partial(choose)), is_async(len)
    (True, True, False)
    """
    found = called_function(function)
    return inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)


def called_function(given: object) -> object:
    """Return the function that a call reaches, behind what binds its first arguments."""
    while True:
        match given:
            case staticmethod() | classmethod():
                given = given.__func__
            case partial() | partialmethod():
                given = given.func
            case FunctionType():
                return given
            case _:
                # Any other callable is an object with a __call__; a property is no such object.
                call = inspect.getattr_static(type(given), "__call__", None)
                if not isinstance(call, FunctionType):
                    return given
                given = call


def signature_of(function: object) -> inspect.Signature | None:
    """Return the parameters of a function; None if Python cannot tell them."""
    try:
        # A decorator may give its function more arguments than it takes itself.
        return inspect.signature(function, follow_wrapped=False)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def fits(called: inspect.Signature, takes: inspect.Signature) -> bool:
    """Whether a call with all promised arguments reaches a function."""
    parameters = called.parameters.values()
    by_name = {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY}
    by_place = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    try:
        takes.bind(*by_place, **by_name)
    except TypeError:
        return False
    return True


def names_of(signature: inspect.Signature) -> str:
    """Return parameters without types and defaults, as text."""
    empty = inspect.Parameter.empty
    plain = [one.replace(annotation=empty, default=empty) for one in signature.parameters.values()]
    return "(" + ", ".join(map(str, plain)) + ")"
