"""Calls of a spout's methods: an error in them is the spout's fault, not Spark's or ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from sparkstorm.clock import Clock
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.errors import ComponentError, SparkstormError, SpoutConnectionError
from sparkstorm.planning.plan import Plan
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.user_errors import message_of, refuse_result
from sparkstorm.topology.wiring import wiring_of

__all__ = ["calling", "context_of", "next_tuple_of", "opening"]


@contextmanager
def calling(spout: str, method: str) -> Iterator[None]:
    """Stand around a call of the user's code.

    >>> with calling("lines", "exhausted"):
    ...     1 / 0
    Traceback (most recent call last):
    sparkstorm.errors.ComponentError: spout 'lines' raised in exhausted: ZeroDivisionError: ...

    Raises:
        ComponentError: it raised; errors that say whose fault it is stay as they are.
    """
    try:
        yield
    except SparkstormError:
        raise
    except Exception as error:  # noqa: BLE001 - user code
        raise ComponentError(
            f"spout {spout!r} raised in {method}: {message_of(error)}"
        ) from untold(error)


@contextmanager
def opening(spout: str) -> Iterator[None]:
    """Stand around the call of a hosted spout's ``open``.

    Raises:
        SpoutConnectionError: the spout raised; errors that say whose fault it is stay as they are.
    """
    try:
        yield
    except SparkstormError:
        raise
    except Exception as error:  # noqa: BLE001 - user code: whatever keeps it from opening
        raise SpoutConnectionError(
            f"spout {spout!r} could not be opened: {message_of(error)}"
        ) from untold(error)


def next_tuple_of(spout: Spout) -> None:
    """Call a hosted spout's ``next_tuple``.

    Raises:
        EmitError: the spout returned messages instead of emitting them.
    """
    # The declared result is None, which a user's method may not know.
    result: object = spout.next_tuple()
    refuse_result(result, "next_tuple")


def context_of(plan: Plan, component: str, task: int, clock: Clock) -> TaskContext:
    """Return the context that a spout's task is opened with."""
    return TaskContext(
        topology=plan.name,
        component=component,
        task=task,
        tasks=plan.tasks,
        config=plan.settings(component),
        clock=clock,
        wiring=wiring_of(plan.topology.components, component),
    )
