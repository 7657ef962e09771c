"""One stage in one partition, whatever its kind: what every runner calls."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import final

from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Stage, StageKind
from sparkstorm.state.log import ChunkStore
from sparkstorm.tasks.acker import run_ackers
from sparkstorm.tasks.dispatch import Delivery
from sparkstorm.tasks.level import StageRun, Workshop
from sparkstorm.tasks.reading import read_loads
from sparkstorm.tasks.report import Report

__all__ = ["StageJob"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageJob:
    """A stage in one partition for one batch.

    Attributes:
        workshop: the process's tasks.
        stage: which stage.
        partition: where.
        batch: the batch.
        attempt: names this run among repeated ones.
        store: for a task's namespace, its chunks; needed for stateful stages.
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
        """Run the stage on what came in, or (the first stage) on what is to be read."""
        plan = self.workshop.plan
        if self.stage.kind is StageKind.ACK:
            return run_ackers(plan, self.partition, packets, self.batch), []
        if self.stage.kind is StageKind.READ:
            sent, reports = read_loads(plan, self.partition, loads, self.batch)
            if len(self.stage.levels) == 1:
                return sent, reports
            packets = [data for _, data in sent]
            moved, more = self.workshop.run(self._levels(), packets)
            return moved, reports + more
        return self.workshop.run(self._levels(), packets)

    def _levels(self) -> StageRun:
        return StageRun(
            stage=self.stage,
            partition=self.partition,
            batch=self.batch,
            attempt=self.attempt,
            store=self.store,
        )
