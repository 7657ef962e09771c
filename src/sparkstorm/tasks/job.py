"""One stage in one partition for one batch: the piece of work that every runner calls."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import final

from sparkstorm.acking.groves import Groves
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.exclusion import leave_out
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.packets.packet import Kind, Packet, PacketHead, read_head
from sparkstorm.planning.plan import Stage, StageKind
from sparkstorm.state.log import ChunkStore
from sparkstorm.tasks.acker import run_ackers
from sparkstorm.tasks.dispatch import Delivery, Dispatcher
from sparkstorm.tasks.level import Workshop, quiet_gc
from sparkstorm.tasks.reading import read_loads
from sparkstorm.tasks.report import Report

__all__ = ["StageJob"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageJob:
    """A stage in one partition for one batch.

    Attributes:
        workshop: the tasks of the process that runs the job.
        stage: the levels to run.
        partition: the number of the partition.
        batch: the batch.
        attempt: names this run among repeated runs; state that it writes is marked with the name.
        store: returns the chunks of a task's namespace; needed for stages with state.
    """

    workshop: Workshop
    stage: Stage
    partition: int
    batch: BatchInfo
    attempt: str = ""
    store: Callable[[str], ChunkStore] | None = None

    def run(
        self, packets: Iterable[bytes], loads: Sequence[Load | SystemPacket] = ()
    ) -> tuple[list[Delivery], list[Report]]:
        """Run the stage on the packets that came in; the first stage runs on loads.

        Packets are taken in the order of (source, sequence), whatever order they arrived in, so
        that a repeated run sends the same bytes. Packets for later stages are passed on.
        """
        plan = self.workshop.plan
        if self.stage.kind is StageKind.ACK:
            return run_ackers(plan, self.partition, packets, self.batch), []
        if self.stage.kind is StageKind.READ:
            sent, reports = read_loads(plan, self.partition, loads, self.batch)
            if len(self.stage.levels) == 1:
                return sent, reports
            with quiet_gc():
                moved, more = self._run_levels([data for _, data in sent])
            return moved, reports + more
        with quiet_gc():
            return self._run_levels(packets)

    def _run_levels(self, packets: Iterable[bytes]) -> tuple[list[Delivery], list[Report]]:
        """Run the stage's levels one after the other; pass on packets for later stages."""
        heads = sorted(((read_head(data), data) for data in packets), key=lambda p: p[0].order)
        out: list[Delivery] = []
        waiting: dict[int, list[bytes]] = {}
        mine = self._tasks()
        for head, data in heads:
            if _is_for(head, mine):
                waiting.setdefault(head.target, []).append(data)
            else:
                out.append((self._home(head), data))
        reports = []
        for task in mine:
            received = waiting.pop(task, [])
            if not received:
                continue
            sent, report = self._run_task(task, received)
            reports.append(report)
            for home, data in sent:
                head = read_head(data)
                if _is_for(head, mine):
                    waiting.setdefault(head.target, []).append(data)
                else:
                    out.append((home, data))
        return out, reports

    def _tasks(self) -> list[int]:
        """Return the stage's tasks in this partition, in the order of their levels."""
        plan = self.workshop.plan
        return [
            task
            for level in self.stage.levels
            for component in plan.levels[level].components
            if not plan.spec(component).is_spout
            for task in plan.local_tasks(component, self.partition)
        ]

    def _home(self, head: PacketHead) -> int:
        return self.workshop.plan.home(head.target) if head.target else self.partition

    def _run_task(self, number: int, received: list[bytes]) -> tuple[list[Delivery], Report]:
        task = self.workshop.task(number)
        decoded = [Packet.decode(data) for data in received]
        packets = [packet for packet in decoded if packet.head.kind is Kind.DATA]
        groves = _groves_of(decoded)
        packets, failed = self._leave_out(number, packets, groves)
        if task.state is None or self.store is None:
            sent, report = task.run(packets, self.batch, self.partition, groves=groves)
            return failed + sent, report
        ended = chain.from_iterable(
            packet.roots().tolist() for packet in decoded if packet.head.kind is Kind.ENDED
        )
        state, store = task.state, self.store(self.workshop.plan.name_of(number))
        try:
            state.load(store)
            sent, report = task.run(packets, self.batch, self.partition, ended, groves)
            state.write(store, self.batch.number, self.attempt)
        finally:  # a run that broke off leaves a changed image, which takes memory, too
            has_room = self.workshop.images.keep(number, state, self.batch.number)
        if not has_room and (warning := self.workshop.no_room(number)):
            report.log("warning", warning)
        return failed + sent, report

    def _leave_out(
        self, number: int, packets: list[Packet], groves: Groves
    ) -> tuple[list[Packet], list[Delivery]]:
        """Leave the batch's excluded roots out; fail the other roots of their tuples."""
        if not self.batch.excluded and not any(packet.names_groves for packet in packets):
            return packets, []
        kept, torn = leave_out(packets, self.batch, groves)
        # A lane of its own: the task itself numbers its packets from the first one's beginning.
        plan = self.workshop.plan
        dispatcher = Dispatcher(plan, number, self.partition, self.batch, lane=1)
        return kept, dispatcher.fail(torn)


def _groves_of(packets: Iterable[Packet]) -> Groves:
    """Return the groves that came in for a task."""
    groves = Groves()
    for packet in packets:
        if packet.head.kind is Kind.GROVES:
            groves.learn(packet.head.source, packet.pieces())
    return groves


def _is_for(head: PacketHead, tasks: list[int]) -> bool:
    return head.kind in (Kind.DATA, Kind.ENDED, Kind.GROVES) and head.target in tasks
