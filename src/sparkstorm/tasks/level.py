"""The tasks that one process runs for one topology, kept between batches."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from sparkstorm.planning.plan import Plan
from sparkstorm.state.images import ImageCache
from sparkstorm.tasks.task import BoltTask

__all__ = ["Workshop", "quiet_gc"]


@final
class Workshop:
    """The tasks that one process runs for one topology; kept between batches.

    Args:
        plan: the topology's plan.
        owner: the process for whose life kept processes run; this one if None.
    """

    def __init__(self, plan: Plan, owner: int | None = None) -> None:
        self.plan = plan
        self._owner = owner
        self._tasks: dict[int, BoltTask] = {}
        self.images = ImageCache(plan.config.state_memory_bytes)
        self._has_warned = False

    def task(self, number: int) -> BoltTask:
        """Return a task; made, and its bolt prepared, at the first call."""
        task = self._tasks.get(number)
        if task is None:
            component = self.plan.component_of(number)
            task = self._tasks[number] = BoltTask(self.plan, component, number, self._owner)
        return task

    def no_room(self, number: int) -> str | None:
        """Return a warning that a task's state found no room; None if one was given before."""
        if self._has_warned:
            return None
        self._has_warned = True
        return _no_room(self.plan.component_of(number), self.plan.config.state_memory_bytes)

    def cleanup(self) -> None:
        """Tell all bolts that the process ends."""
        for task in self._tasks.values():
            task.cleanup()


@contextmanager
def quiet_gc() -> Iterator[None]:
    """Keep Python's cycle collector from running while millions of short-lived objects are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _no_room(component: str, limit: int) -> str:
    return (
        f"a worker process has no room for the state of all tasks that it runs: that of a task of "
        f"{component!r} is read again each time. Raise topology.state.memory.bytes ({limit:,}), "
        f"use executors of one core each, or topology.state.backend = rocksdb (docs/state.md)"
    )
