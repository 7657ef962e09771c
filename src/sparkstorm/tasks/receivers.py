"""Who receives a tuple, told as soon as it is emitted: for components that ask, as Storm's do."""

from collections.abc import Sequence
from typing import final

from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import CoderError
from sparkstorm.planning.plan import Plan, Route
from sparkstorm.tasks.collectors.outbox import Outbox
from sparkstorm.tasks.routing import Emissions, choose_tasks, tasks_of_one

__all__ = ["Receivers", "turn_of"]


def turn_of(batch: BatchInfo, task: int) -> int:
    """Return where round-robin starts for a task in a batch."""
    return batch.number + task


@final
class Receivers:
    """Tells the tasks that a tuple goes to, by the same rules as all tuples of a batch.

    A partial key grouping looks at how many tuples went to either task before, which one tuple
    alone does not show: there the answer is one of the two.

    Args:
        plan: the topology's plan.
        task: the emitter.
    """

    def __init__(self, plan: Plan, task: int) -> None:
        self._plan = plan
        self._task = task
        self._turn = 0
        self._partition = 0

    def begin(self, batch: BatchInfo, partition: int) -> None:
        """Start a batch."""
        self._turn = turn_of(batch, self._task)
        self._partition = partition

    def of_last(self, box: Outbox) -> list[int]:
        """Return the tasks that the last tuple of an outbox goes to, in ascending order."""
        routes = self._plan.routes[box.key]
        if not routes or not len(box):
            return []
        found = self._quickly(routes, box)
        return sorted(self._slowly(routes, box) if found is None else found)

    def _quickly(self, routes: Sequence[Route], box: Outbox) -> list[int] | None:
        """Route one tuple of plain values; None if that is not enough."""
        row, turn = box.last_row(), self._turn + len(box) - 1
        found: list[int] = []
        for route in routes:
            tasks = tasks_of_one(route, box.stream, row, turn)
            if tasks is None:
                return None
            found += tasks
        return found

    def _slowly(self, routes: Sequence[Route], box: Outbox) -> list[int]:
        """Route a batch of one tuple."""
        direct = box.direct_tasks()
        try:
            columns = box.last_columns()
        except CoderError:  # it goes nowhere: it fails when the batch is sent
            return []
        emissions = Emissions(
            columns=columns,
            count=1,
            turn=self._turn + len(box) - 1,
            local={
                route.target: self._plan.local_tasks(route.target, self._partition)
                for route in routes
            },
            direct=None if direct is None else direct[-1:],
        )
        try:
            chosen = [choose_tasks(route, emissions).tasks.tolist() for route in routes]
        except CoderError:
            return []
        return [task for tasks in chosen for task in tasks]
