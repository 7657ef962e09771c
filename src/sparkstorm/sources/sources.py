"""All sources of one topology: the tasks of its spouts, and the replays of dead letters."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.metrics import PartitionStatistics, TaskMetrics, skipped_in
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.partitioned.task import PartitionedTask
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.sources.replayed.replays import Replays
from sparkstorm.sources.source import Progress, Source
from sparkstorm.sources.unfinished import Named, Unfinished
from sparkstorm.tasks.report import LogLine

__all__ = ["Sources"]


@final
class Sources:
    """Makes the sources of a plan, and speaks to all of them; not thread-safe.

    Args:
        plan: the topology's plan.
        dead_letters: where dead letters go.
    """

    def __init__(self, plan: Plan, dead_letters: DeadLetterQueue) -> None:
        self._plan = plan
        self.arrived = threading.Event()
        """Set when a hosted spout has emitted."""
        self.replays = Replays(plan, dead_letters)
        self.hosted: dict[int, HostedTask] = {}
        self.partitioned: dict[int, PartitionedTask] = {}
        for spec in plan.topology.spouts:
            for task in plan.tasks[spec.id]:
                if isinstance(spec.component, PartitionedSpout):
                    self.partitioned[task] = PartitionedTask(plan, spec.id, task, dead_letters)
                else:
                    made = HostedTask(plan, spec.id, task, self.arrived, dead_letters)
                    self.hosted[task] = made
        self._tasks: dict[int, Source] = {**self.hosted, **self.partitioned}
        self._all: list[Source] = [*self._tasks.values(), self.replays]

    def __iter__(self) -> Iterator[Source]:
        return iter(self._all)

    def __len__(self) -> int:
        """How many tasks the spouts have."""
        return len(self._tasks)

    def task(self, number: int) -> Source:
        """Return a task by its number."""
        return self._tasks[number]

    def source_of(self, planned: PlannedLoad) -> Source:
        """Return the source that a planned load is from."""
        return self.replays if planned.letters else self._tasks[planned.load.task]

    # --- how the sources stand -------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Messages given out and neither acked nor given up."""
        return self._sum(lambda source: source.pending)

    @property
    def in_flight(self) -> int:
        """Messages in a batch, or open after it."""
        return self._sum(lambda source: source.in_flight)

    @property
    def given_up(self) -> int:
        """Messages that will not be tried again."""
        return self._sum(lambda source: source.given_up)

    @property
    def waiting(self) -> int:
        """Failed messages that wait for their next attempt, wherever they wait."""
        others: list[Source] = [*self.partitioned.values(), self.replays]
        return self.left_failed + sum(source.pending - source.in_flight for source in others)

    @property
    def left_failed(self) -> int:
        """Messages that failed and that their hosted spouts have not emitted again."""
        return self._sum(lambda source: source.left_failed)

    def drained(self, *, fresh: bool) -> bool:
        """Whether nothing is pending, and if ``fresh`` messages are wanted, none will come."""
        return all(source.drained if fresh else source.idle for source in self._all)

    def partitions(
        self, counts: Mapping[str, Mapping[int, TaskMetrics]]
    ) -> dict[str, tuple[PartitionStatistics, ...]]:
        """Return how the partitions of each partitioned spout stand, by spout.

        Args:
            counts: what tasks have counted, by component and task.
        """
        found: dict[str, list[PartitionStatistics]] = {}
        for task in self.partitioned.values():
            user = dict(counts.get(task.component, {}).get(task.task, TaskMetrics()).user)
            stand = (
                replace(one, skipped=int(user.get(skipped_in(one.partition), 0)))
                for one in task.partitions()
            )
            found.setdefault(task.component, []).extend(stand)
        return {component: tuple(stand) for component, stand in found.items()}

    # --- the messages, for people ---------------------------------------------------------------

    def unfinished(self) -> Iterator[Unfinished]:
        """Yield the messages that have not ended."""
        for source in self._all:
            yield from source.messages.unfinished()

    def named(self, roots: U64) -> dict[int, Named]:
        """Return the names of those of some ascending roots that are in flight."""
        return {root: named for source in self._all for root, named in source.messages.named(roots)}

    def uncalled_secs(self, now: float, polled_secs: float) -> dict[str, float]:
        """Return for how long each spout was not called; of several tasks, the longest.

        Args:
            now: the time.
            polled_secs: for how long partitioned spouts were not asked.
        """
        found = {task.component: polled_secs for task in self.partitioned.values()}
        for hosted in self.hosted.values():
            secs = max(0.0, now - hosted.seen)
            found[hosted.component] = max(secs, found.get(hosted.component, 0.0))
        return found

    def addressed(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Yield lines of tasks with the names of topology and message."""
        all_lines = list(lines)
        roots = {line.root for line in all_lines if line.root is not None}
        named = self.named(np.array(sorted(roots), np.uint64)) if roots else {}
        for line in all_lines:
            one = named.get(line.root) if line.root is not None else None
            yield replace(
                line,
                topology=self._plan.name,
                message="" if one is None else one.id,
                name="" if one is None else one.name,
            )

    def hurry(self, ids: Collection[str], now: float) -> int:
        """Let messages that wait for a retry be due now; return how many."""
        return sum(source.messages.hurry(ids, now) for source in self._all)

    # --- for all of them ----------------------------------------------------------------------

    def recover(self, progress_of: Callable[[str], Progress | None], now: float) -> None:
        """Begin, each source with its progress under an earlier driver.

        Args:
            progress_of: returns the progress of an owner (``component/index``), if there is any.
            now: the time.
        """
        for source in self._all:
            source.recover(progress_of(source.owner), now)

    def close(self) -> None:
        """End all sources; hosted spouts are closed by whoever runs their threads."""
        for source in self._all:
            source.close()

    def look(self, now: float) -> None:
        """Look for new requests of replays."""
        self.replays.look(now)

    def deliver(self, verdicts: Verdicts, now: float) -> None:
        """Give each source the verdicts on its messages."""
        for source in self._all:
            acked = _between(verdicts.acked, *source.bounds)
            failed = _failed_between(verdicts.failed, *source.bounds)
            if len(acked) or len(failed):
                source.deliver(acked, failed, now)

    def ack_untracked(self, planned: Iterable[PlannedLoad]) -> None:
        """Ack loads whose batch is committed, in a topology without ackers."""
        for one in planned:
            self.source_of(one).ack_untracked(one.load)

    def _sum(self, count: Callable[[Source], int]) -> int:
        return sum(map(count, self._all))


def _between(roots: U64, first: int, end: int) -> U64:
    if end >= 1 << 64:
        return roots
    start, stop = np.searchsorted(roots, np.array([first, end], np.uint64))
    return roots[start:stop]


def _failed_between(failed: FailedRoots, first: int, end: int) -> FailedRoots:
    return failed if end >= 1 << 64 else failed.between(first, end)
