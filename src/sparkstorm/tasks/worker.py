"""A worker: all tasks of a topology in one process, and the stages that they run."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import final

import numpy as np

from sparkstorm.acking.groves import Groves
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.exclusion import leave_out
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.packets.packet import Kind, Packet, PacketHead, read_head
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.state.image_cache import ImageCache
from sparkstorm.state.stores import ChunkStore
from sparkstorm.tasks.acker import run_ackers
from sparkstorm.tasks.dispatch import Delivery, Dispatcher
from sparkstorm.tasks.reading.loads import read_loads
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.task import BoltTask

__all__ = ["StageJob", "Worker"]


_FOR_TASKS = frozenset({Kind.DATA, Kind.ENDED, Kind.GROVES, Kind.TRACED})
"""The kinds of packets that a bolt's task takes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageJob:
    """A stage in one partition for one batch; every runner makes and runs these.

    Attributes:
        worker: the process's tasks.
        stage: the stage, of any kind.
        partition: the partition.
        batch: the batch.
        attempt: the name of this run among repeated ones, with which the state is marked.
        store: returns the chunks of a task's namespace; needed for a stage with state.
    """

    worker: "Worker"
    stage: Stage
    partition: int
    batch: BatchInfo
    attempt: str = ""
    store: Callable[[str], ChunkStore] | None = None

    def run(
        self, packets: Iterable[bytes], loads: Sequence[Load | SystemPacket] = ()
    ) -> tuple[list[Delivery], list[Report]]:
        """Run the stage on the received packets, or (the first stage) on the loads."""
        plan = self.worker.plan
        if self.stage.kind is StageKind.ACK:
            return run_ackers(plan, self.partition, packets, self.batch)
        with _quiet_gc():
            if self.stage.kind is not StageKind.READ:
                return self.worker.run_levels(self, packets)
            sent, reports = read_loads(plan, self.partition, loads, self.batch)
            if len(self.stage.levels) == 1:
                return sent, reports
            moved, more = self.worker.run_levels(self, [data for _, data in sent])
            return moved, reports + more


@final
class Worker:
    """A topology's tasks in one process (Storm's worker); they live from batch to batch.

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

    def run_levels(
        self, job: StageJob, packets: Iterable[bytes]
    ) -> tuple[list[Delivery], list[Report]]:
        """Run a stage's levels one after the other; pass all other packets on.

        Tasks get packets in the order of (source, sequence), whatever the order of arrival, so a
        repeated run sends the same bytes.
        """
        # Spark delivers shuffled rows in any order, and a repeated run in another.
        heads = sorted(((read_head(data), data) for data in packets), key=lambda p: p[0].order)
        out: list[Delivery] = []
        # Tasks of later levels get the packets of earlier ones without leaving the process.
        waiting: dict[int, list[bytes]] = {}
        mine = self._tasks_of(job)
        for head, data in heads:
            if _is_for(head, mine):
                waiting.setdefault(head.target, []).append(data)
            else:
                out.append((self._home(head, job.partition), data))
        reports = []
        for task in mine:
            received = waiting.pop(task, [])
            # A task without packets does not run, and its state stays as it is.
            if not received:
                continue
            sent, report = self._run_task(task, job, received)
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

    def _tasks_of(self, job: StageJob) -> list[int]:
        """Return the stage's tasks in this partition, in the order of their levels."""
        return [
            task
            for level in job.stage.levels
            for component in self.plan.levels[level].components
            if not self.plan.spec(component).is_spout
            for task in self.plan.local_tasks(component, job.partition)
        ]

    def _home(self, head: PacketHead, partition: int) -> int:
        return self.plan.home(head.target) if head.target else partition

    def _run_task(
        self, number: int, job: StageJob, received: list[bytes]
    ) -> tuple[list[Delivery], Report]:
        component = self.plan.component_of(number)
        task = self._tasks.get(number)
        if task is None:
            task = self._tasks[number] = BoltTask(self.plan, component, number, self._owner)
        decoded = [Packet.decode(data) for data in received]
        packets = [packet for packet in decoded if packet.head.kind is Kind.DATA]
        groves, batch = _groves_of(decoded), _tracing(job.batch, decoded)
        packets, failed = self._leave_out(number, job, packets, groves)
        if task.state is None or job.store is None:
            sent, report = task.run(packets, batch, job.partition, groves=groves)
            return failed + sent, report
        ended = chain.from_iterable(
            packet.roots().tolist() for packet in decoded if packet.head.kind is Kind.ENDED
        )
        state, store = task.state, job.store(self.plan.name_of(number))
        try:
            state.load(store)
            sent, report = task.run(packets, batch, job.partition, ended, groves)
            state.write(store, job.batch.number, job.attempt)
        finally:  # an image takes memory after a run that broke off, too
            has_room = self._images.keep(number, state, job.batch.number)
        if not has_room and not self._has_warned:
            self._has_warned = True
            report.log("warning", _no_room(component, self.plan.config.state_memory_bytes))
        return failed + sent, report

    def _leave_out(
        self, number: int, job: StageJob, packets: list[Packet], groves: Groves
    ) -> tuple[list[Packet], list[Delivery]]:
        """Leave out the tuples of the batch's excluded roots; fail these tuples' other roots."""
        if not job.batch.excluded and not any(packet.names_groves for packet in packets):
            return packets, []
        kept, torn = leave_out(packets, job.batch, groves)
        # A lane of its own: the task itself numbers its packets from the beginning of lane 0.
        dispatcher = Dispatcher(self.plan, number, job.partition, job.batch, lane=1)
        return kept, dispatcher.fail(torn)


@contextmanager
def _quiet_gc() -> Iterator[None]:
    """Stop Python's cycle collector while a stage makes millions of short-lived objects."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _groves_of(packets: Iterable[Packet]) -> Groves:
    """Return the groves that arrived for a task."""
    groves = Groves()
    for packet in packets:
        if packet.head.kind is Kind.GROVES:
            groves.learn(packet.head.source, packet.pieces())
    return groves


def _tracing(batch: BatchInfo, packets: Iterable[Packet]) -> BatchInfo:
    """Return the batch's facts, with the roots that other tasks found to be followed."""
    found = [packet.roots() for packet in packets if packet.head.kind is Kind.TRACED]
    return batch.tracing(np.unique(np.concatenate(found))) if found else batch


def _no_room(component: str, limit: int) -> str:
    return (
        f"a worker process has no room for the state of all its tasks, so a task of {component!r} "
        f"reads its state again in each batch. Raise topology.state.memory.bytes ({limit:,}), "
        f"use executors of one core each, or topology.state.backend = rocksdb (docs/state.md)"
    )


def _is_for(head: PacketHead, tasks: list[int]) -> bool:
    return head.kind in _FOR_TASKS and head.target in tasks
