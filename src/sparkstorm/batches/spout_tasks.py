"""The tasks of all spouts of a topology, and the verdicts that they are given."""

import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias, final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.counts import Counts, FirstFailures
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.partitioned.task import PartitionedTask
from sparkstorm.sources.replayed.replays import Replays
from sparkstorm.tasks.report import LogLine

__all__ = ["Deliver", "SpoutTasks"]

Deliver: TypeAlias = Callable[[HostedTask, U64, FailedRoots], None]
"""How verdicts reach a hosted task: at once, or through its thread."""


@final
class SpoutTasks:
    """One object for each spout task of a plan, by its number; not thread-safe.

    Args:
        plan: the topology's plan.
        office: where dead letters go.
        counts: what is counted of their messages.
        arrived: set when a hosted spout has emitted.
        deliver: how verdicts reach hosted tasks.
        on_log: told of what spouts report.
    """

    def __init__(
        self,
        plan: Plan,
        office: DeadLetterOffice,
        counts: Counts,
        arrived: threading.Event,
        deliver: Deliver | None,
        on_log: Callable[[LogLine], None],
    ) -> None:
        self.arrived = arrived
        self.replays = Replays(plan, office)
        self.hosted: dict[int, HostedTask] = {}
        self.partitioned: dict[int, PartitionedTask] = {}
        self._plan = plan
        self._office = office
        self._counts = counts
        self._deliver = deliver or (lambda task, acked, failed: task.deliver(acked, failed))
        self._first_failures = FirstFailures(on_log)

        def log(component: str, task: int, level: str, text: str) -> None:
            on_log(LogLine(component, task, level, text))

        for spec in plan.topology.spouts:
            for task in plan.tasks[spec.id]:
                if isinstance(spec.component, PartitionedSpout):
                    self.partitioned[task] = PartitionedTask(plan, spec.id, task, log, office)
                else:
                    self.hosted[task] = HostedTask(plan, spec.id, task, log, arrived, office)

    def __iter__(self) -> Iterator[HostedTask | PartitionedTask]:
        yield from self.hosted.values()
        yield from self.partitioned.values()

    @property
    def pending(self) -> int:
        """Messages given out and neither acked nor given up."""
        return sum(task.pending for task in self) + self.replays.pending

    @property
    def given_up(self) -> int:
        """Messages that will not be tried again."""
        return sum(task.given_up for task in self) + self.replays.given_up

    @property
    def left_failed(self) -> int:
        """Messages that failed and that their hosted spouts have not emitted again."""
        return sum(task.left_failed for task in self.hosted.values())

    @property
    def dead_letters(self) -> tuple[int, int]:
        """How many dead letters were written, and how many of them a sink refused."""
        return self._office.written, self._office.sink_faults

    def open(self, was: BatchPlan | None, now: float) -> None:
        """Open the partitioned spouts and look for requests of replays.

        Args:
            was: the last plan of the driver before, with the progress of each task.
            now: the time.
        """
        for number, task in self.partitioned.items():
            owner = self._plan.name_of(number)
            outstanding = () if was is None else was.outstanding
            owed = [item for item in outstanding if item.owner == owner]
            task.open(None if was is None else was.cursors.get(owner), owed, now)
        self.replays.look(now)

    def close(self) -> None:
        """Close the partitioned spouts; hosted ones are closed by whoever runs them."""
        for task in self.partitioned.values():
            task.spout.close()

    def look(self, now: float) -> None:
        """Look for new requests of replays."""
        self.replays.look(now)

    def drained(self, *, fresh: bool) -> bool:
        """Whether nothing is pending, and if ``fresh`` messages are wanted, none will come."""
        if fresh:
            return not self.replays.busy and all(task.drained for task in self)
        waiting = any(task.waiting for task in self.hosted.values())
        return not waiting and not any(task.pending for task in self)

    def give(self, verdicts: Verdicts, now: float) -> None:
        """Give each task the verdicts on its messages."""
        self._counts.acked += len(verdicts.acked)
        self._counts.note_failed(verdicts.failed)
        verdicts.failed.share_groups()
        for failure, _ in verdicts.failed.counts():
            self._first_failures.show(failure)
        for task in self:
            acked = _of_task(verdicts.acked, task.task)
            mine = verdicts.failed.between(make_root(task.task, 0), make_root(task.task + 1, 0))
            if not len(acked) and not len(mine):
                continue
            if isinstance(task, HostedTask):
                self._deliver(task, acked, mine)
            else:
                task.deliver(acked, mine, now)
        self.replays.deliver(verdicts.acked, verdicts.failed, now)

    def ack_untracked(self, plan: BatchPlan) -> None:
        """Ack the splits of a batch of an untracked topology; hosted messages are acked already."""
        for planned in plan.loads:
            self._counts.acked += planned.load.count
            if planned.load.split is not None:
                self.partitioned[planned.load.task].done_untracked(planned.load.split)


def _of_task(roots: U64, task: int) -> U64:
    bounds = np.array([make_root(task, 0), make_root(task + 1, 0)], np.uint64)
    start, stop = np.searchsorted(roots, bounds)
    return roots[start:stop]
