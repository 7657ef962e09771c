"""The job of a batch in one process: the plan's stages, with packets handed from list to list."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, final

from sparkstorm.batches.job_result import JobResult
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.processes.client import end_keeper
from sparkstorm.state.stores import ChunkStore, MemoryStore
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.worker import StageJob, Worker

__all__ = ["Jobs", "Loads", "LocalJobs"]

Loads: TypeAlias = Mapping[int, Sequence[Load | SystemPacket]]
"""The loads of each partition."""


class Jobs(Protocol):
    """The runner's view of Spark: runs the job of a batch, keeps the state that the job wrote."""

    def run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        """Run all stages.

        Raises:
            JobError: the job failed.
        """
        ...

    def commit(self) -> None:
        """Keep the state that the last job wrote."""
        ...

    def roll_back(self) -> None:
        """Forget the state that the last job wrote."""
        ...

    def stores(self) -> Mapping[str, ChunkStore]:
        """Return the committed state of each task of a stateful bolt, by ``component/index``."""
        ...

    def close(self) -> None:
        """Tell the tasks that the process ends."""
        ...


@final
class LocalJobs:
    """Runs every stage once, in the caller's thread, with state in memory.

    Args:
        plan: the topology's plan.
        stores: the state of an earlier run, if this run goes on with it.
        open_store: returns the committed state of a task that is not among the stores, when the
            task first runs.
    """

    def __init__(
        self,
        plan: Plan,
        stores: dict[str, MemoryStore] | None = None,
        open_store: Callable[[str], MemoryStore] | None = None,
    ) -> None:
        self._plan = plan
        self._worker = Worker(plan)
        self._stores = {} if stores is None else stores
        self._open_store = open_store or (lambda _: MemoryStore())
        self._runs = 0
        self._run = ""

    def run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        """Run all stages on the committed state. Each stage runs once, so no runs are compared."""
        self.roll_back()  # a job that failed before this one may have changed state
        self._runs += 1
        self._run = batch.run
        boxes: dict[int, list[bytes]] = {}
        reports: list[Report] = []
        for stage in self._plan.stages:
            boxes = self._run_stage(stage, batch, boxes, loads, reports)
        rows = [data for box in boxes.values() for data in box]
        return JobResult(rows=rows, reports=reports)

    def commit(self) -> None:
        """Keep the state that the last job wrote."""
        for store in self._stores.values():
            store.commit()

    def roll_back(self) -> None:
        """Forget the state that the last job wrote."""
        for store in self._stores.values():
            store.rollback()

    def stores(self) -> Mapping[str, MemoryStore]:
        """Return the state of each task of a stateful bolt, by ``component/index``."""
        return self._stores

    def close(self) -> None:
        """Tell all bolts that the process ends, and end the processes that they keep."""
        self._worker.cleanup()
        end_keeper(self._run)

    def _run_stage(
        self,
        stage: Stage,
        batch: BatchInfo,
        boxes: Mapping[int, list[bytes]],
        loads: Loads,
        reports: list[Report],
    ) -> dict[int, list[bytes]]:
        moved: dict[int, list[bytes]] = {}
        for partition in range(self._plan.partitions):
            mine = loads.get(partition, ()) if stage.kind is StageKind.READ else ()
            sent, told = self._job(stage, partition, batch).run(boxes.get(partition, []), mine)
            reports += told
            for home, data in sent:
                moved.setdefault(home, []).append(data)
        return moved

    def _job(self, stage: Stage, partition: int, batch: BatchInfo) -> StageJob:
        return StageJob(
            worker=self._worker,
            stage=stage,
            partition=partition,
            batch=batch,
            attempt=f"{batch.number}.{self._runs}",
            store=self._store_of,
        )

    def _store_of(self, namespace: str) -> MemoryStore:
        if namespace not in self._stores:
            self._stores[namespace] = self._open_store(namespace)
        return self._stores[namespace]
