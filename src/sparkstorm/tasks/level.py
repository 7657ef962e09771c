"""Run a stage in one partition: all its tasks on all packets that are for them."""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import final

from sparkstorm.acking.groves import Groves
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.exclusion import leave_out
from sparkstorm.packets.packet import Kind, Packet, PacketHead, read_head
from sparkstorm.planning.plan import Plan, Stage
from sparkstorm.state.images import ImageCache
from sparkstorm.state.log import ChunkStore
from sparkstorm.tasks.dispatch import Delivery, Dispatcher
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.task import BoltTask

__all__ = ["StageRun", "Workshop", "quiet_gc"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """What a stage needs to know beside its packets.

    Attributes:
        stage: which levels to run.
        partition: where.
        batch: the batch.
        attempt: names this run of the stage among repeated ones; state is marked with it.
        store: for a task's namespace, its chunks.
    """

    stage: Stage
    partition: int
    batch: BatchInfo
    attempt: str = ""
    store: Callable[[str], ChunkStore] | None = None


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
        self._images = ImageCache(plan.config.state_memory_bytes)
        self._has_warned = False

    def run(self, run: StageRun, packets: Iterable[bytes]) -> tuple[list[Delivery], list[Report]]:
        """Run a stage's levels one after the other; pass on what is not for them.

        Packets are taken in the order of (source, sequence), whatever order they arrived in, so
        that a repeated run sends the same bytes.
        """
        with quiet_gc():
            return self._run(run, packets)

    def _run(self, run: StageRun, packets: Iterable[bytes]) -> tuple[list[Delivery], list[Report]]:
        heads = sorted(((read_head(data), data) for data in packets), key=lambda p: p[0].order)
        out: list[Delivery] = []
        waiting: dict[int, list[bytes]] = {}
        mine = self._tasks_of(run)
        for head, data in heads:
            if _is_for(head, mine):
                waiting.setdefault(head.target, []).append(data)
            else:
                out.append((self._home(head, run.partition), data))
        reports = []
        for task in mine:
            received = waiting.pop(task, [])
            if not received:
                continue
            sent, report = self._run_task(task, run, received)
            reports.append(report)
            for home, data in sent:
                head = read_head(data)
                if _is_for(head, mine):
                    waiting.setdefault(head.target, []).append(data)
                else:
                    out.append((home, data))
        return out, reports

    def cleanup(self) -> None:
        """Tell all bolts that the process ends."""
        for task in self._tasks.values():
            task.cleanup()

    def _tasks_of(self, run: StageRun) -> list[int]:
        """The stage's tasks in this partition, in the order of their levels."""
        return [
            task
            for level in run.stage.levels
            for component in self.plan.levels[level].components
            if not self.plan.spec(component).is_spout
            for task in self.plan.local_tasks(component, run.partition)
        ]

    def _home(self, head: PacketHead, partition: int) -> int:
        return self.plan.home(head.target) if head.target else partition

    def _run_task(
        self, number: int, run: StageRun, received: list[bytes]
    ) -> tuple[list[Delivery], Report]:
        component = self.plan.component_of(number)
        task = self._tasks.get(number)
        if task is None:
            task = self._tasks[number] = BoltTask(self.plan, component, number, self._owner)
        decoded = [Packet.decode(data) for data in received]
        packets = [packet for packet in decoded if packet.head.kind is Kind.DATA]
        groves = _groves_of(decoded)
        packets, failed = self._leave_out(number, run, packets, groves)
        if task.state is None or run.store is None:
            sent, report = task.run(packets, run.batch, run.partition, groves=groves)
            return failed + sent, report
        ended = chain.from_iterable(
            packet.roots().tolist() for packet in decoded if packet.head.kind is Kind.ENDED
        )
        state, store = task.state, run.store(self.plan.name_of(number))
        try:
            state.load(store)
            sent, report = task.run(packets, run.batch, run.partition, ended, groves)
            state.write(store, run.batch.number, run.attempt)
        finally:  # what a run left that broke off takes memory, too
            has_room = self._images.keep(number, state, run.batch.number)
        if not has_room and not self._has_warned:
            self._has_warned = True
            report.log("warning", _no_room(component, self.plan.config.state_memory_bytes))
        return failed + sent, report

    def _leave_out(
        self, number: int, run: StageRun, packets: list[Packet], groves: Groves
    ) -> tuple[list[Packet], list[Delivery]]:
        """Leave the batch's excluded roots out; fail what else belongs to their tuples."""
        if not run.batch.excluded and not any(packet.names_groves for packet in packets):
            return packets, []
        kept, torn = leave_out(packets, run.batch, groves)
        # A lane of its own: the task itself numbers its packets from the first one's beginning.
        dispatcher = Dispatcher(self.plan, number, run.partition, run.batch, lane=1)
        return kept, dispatcher.fail(torn)


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


def _groves_of(packets: Iterable[Packet]) -> Groves:
    """The groves that came in for a task."""
    groves = Groves()
    for packet in packets:
        if packet.head.kind is Kind.GROVES:
            groves.learn(packet.head.source, packet.pieces())
    return groves


def _no_room(component: str, limit: int) -> str:
    return (
        f"a worker process has no room for the state of all tasks that it runs: that of a task of "
        f"{component!r} is read again each time. Raise topology.state.memory.bytes ({limit:,}), "
        f"use executors of one core each, or topology.state.backend = rocksdb (docs/state.md)"
    )


def _is_for(head: PacketHead, tasks: list[int]) -> bool:
    return head.kind in (Kind.DATA, Kind.ENDED, Kind.GROVES) and head.target in tasks
