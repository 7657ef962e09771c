"""A cluster on a bad day: runs jobs as Spark does, with tasks lost, repeated and moved about."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

from sparkstorm.batches.drive import JobError
from sparkstorm.batches.events.taps import Tap, Taps
from sparkstorm.batches.job_result import JobResult
from sparkstorm.local.jobs import Loads
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.packets.packet import DRIVER, Kind, Packet, read_head
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.state.stores import MemoryStore
from sparkstorm.tasks.dispatch import Delivery
from sparkstorm.tasks.report import Report
from sparkstorm.tasks.state_runs import Place, StateRun, StateRuns, fingerprint
from sparkstorm.tasks.worker import StageJob, Worker
from sparkstorm.testing.faults import Chance
from sparkstorm.testing.internal.witness import BrokenPromise

__all__ = ["Disk", "RunWatch", "SimulatedJobs", "TaskRun"]

_MAX_LOST_JOBS = 5
"""After so many lost jobs a batch goes through: no world is that bad."""


@final
@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run of one stage in one partition.

    Attributes:
        name: no other run has the same; it marks the state that the run writes.
    """

    name: str


class RunWatch(Protocol):
    """Hears of each run, and of the runs that count in the end."""

    def running(self, run: TaskRun) -> None:
        """A run begins; all work of bolts until the next run is part of it."""
        ...

    def committed(self, number: int, runs: list[TaskRun], *, damaged: bool) -> None:
        """A batch is committed, made up of these runs.

        ``damaged`` says that some of its messages may rightly be lost.
        """
        ...


@final
class Disk:
    """Committed state, which outlives all processes. A task's run works on a copy."""

    def __init__(self) -> None:
        self.stores: dict[str, MemoryStore] = {}

    def copy(self, namespace: str) -> MemoryStore:
        """Return a copy of a task's state as of the last commit."""
        return self.stores.get(namespace, MemoryStore()).copy()


@dataclass(frozen=True, slots=True)
class _Output:
    """The packets, reports and changed state of one run."""

    run: TaskRun
    sent: list[Delivery]
    reports: list[Report]
    stores: Mapping[str, MemoryStore]
    fingerprint: str


@final
class SimulatedJobs:
    """Runs the jobs of one driver's life on a handful of worker processes.

    Each run of a task starts from the committed state, as on Spark. After a repeated run, later
    stages read the packets of the last run, and the state of the first run is committed. Spark does
    the same, and the driver has to notice.
    """

    def __init__(
        self,
        plan: Plan,
        chance: Chance,
        disk: Disk,
        *,
        life: int,
        reproducible: bool,
        watch: RunWatch,
        on_tap: Tap,
    ) -> None:
        self._plan = plan
        self._chance = chance
        self._disk = disk
        self._life = life
        self._reproducible = reproducible
        self._watch = watch
        self._taps = Taps(plan, on_tap)
        self._processes = [Worker(plan) for _ in range(chance.faults.processes)]
        self._outputs: dict[tuple[int, int], _Output] = {}
        self._before: dict[tuple[int, int], _Output] = {}
        self._state_runs: list[tuple[Place, _Output]] = []
        self._number = -1
        self._attempt = 0
        self._runs = 0
        self._damaged = False

    def run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        """Run all stages, without tasks whose output a lost job has left.

        A probe neither uses nor leaves outputs: on Spark a probe runs on a copy of the plan.

        Raises:
            JobError: the job failed.
        """
        if batch.purpose is Purpose.BATCH:
            return self._run(batch, loads)
        kept = self._outputs, self._before, self._state_runs
        self._outputs, self._before, self._state_runs = {}, {}, []
        try:
            return self._run(batch, loads)
        finally:
            self._outputs, self._before, self._state_runs = kept

    def _run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        self._begin(batch)
        boxes: dict[int, list[bytes]] = {}
        for index, stage in enumerate(self._plan.stages):
            moved: dict[int, list[bytes]] = {}
            for partition in range(self._plan.partitions):
                output = self._outputs.get((index, partition))
                if output is None:
                    mine = boxes.get(partition, [])
                    output = self._run_task(index, stage, partition, batch, mine, loads)
                    self._replace(index, partition, output)
                last = stage is self._plan.stages[-1]
                for home, data in output.sent if last else self._meddle(output.sent, index):
                    moved.setdefault(home, []).append(data)
            for packets in moved.values():
                self._chance.shuffle(packets)
            boxes = moved
            self._perhaps_lose_job(index)
        reports = [report for output in self._outputs.values() for report in output.reports]
        rows = [data for box in boxes.values() for data in box]
        return JobResult(rows=rows, reports=reports, runs=self._all_state_runs())

    def commit(self) -> None:
        """Keep the state of the first run of each task, as Spark does."""
        for _, output in reversed(self._state_runs):
            self._disk.stores.update(output.stores)
        runs = []
        for (stage, _), output in sorted(self._outputs.items()):
            runs.append(output.run)
            if stage == len(self._plan.stages) - 1:
                self._taps.add(_tapped(output.sent))
        # here and not by the driver, who may die between the commit and telling
        self._taps.tell()
        self._watch.committed(self._number, runs, damaged=self._damaged)

    def roll_back(self) -> None:
        """Forget the outputs and the state of the batch's tasks."""
        self._outputs.clear()
        self._before.clear()
        self._state_runs.clear()

    def _all_state_runs(self) -> StateRuns:
        """Return all runs of stages with state since the batch began, or was rolled back."""
        told = [StateRun(place, output.fingerprint) for place, output in self._state_runs]
        return StateRuns(told, Counter(run.place for run in told))

    def stores(self) -> Mapping[str, MemoryStore]:
        """Return the committed state of each task."""
        return self._disk.stores

    def close(self) -> None:
        """Tell all bolts that their processes end."""
        for process in self._processes:
            process.cleanup()

    def _begin(self, batch: BatchInfo) -> None:
        if batch.number != self._number:
            self._number, self._attempt, self._damaged = batch.number, 0, False
            self.roll_back()
        self._attempt += 1
        self._before |= self._outputs
        where = f"batch {batch.number}, attempt {self._attempt}"
        for key in list(self._outputs):
            if not self._chance.strikes("reused_output", f"{where}, stage {key[0]} in {key[1]}"):
                del self._outputs[key]
        self._damaged |= bool(batch.excluded)

    def _replace(self, stage: int, partition: int, output: _Output) -> None:
        """Put an output in its place.

        Outputs behind a changed output cannot be used again: Spark compares checksums, and does the
        same.
        """
        self._outputs[stage, partition] = output
        before = self._before.get((stage, partition))
        if before is not None and sorted(before.sent) != sorted(output.sent):
            for key in [key for key in self._outputs if key[0] > stage]:
                del self._outputs[key]

    def _run_task(
        self,
        index: int,
        stage: Stage,
        partition: int,
        batch: BatchInfo,
        packets: list[bytes],
        loads: Loads,
    ) -> _Output:
        first = self._run_once(index, partition, batch, packets, loads)
        where = f"batch {batch.number}, stage {index} in partition {partition}"
        rough = self._attempt <= _MAX_LOST_JOBS
        if not (rough and self._chance.strikes("repeated_task", where)):
            return first
        second = self._run_once(index, partition, batch, packets, loads)
        if self._reproducible and sorted(first.sent) != sorted(second.sent):
            levels = [self._plan.levels[level].components for level in stage.levels]
            raise BrokenPromise(
                f"{where} ({levels}) sent other packets when it was run again. If a bolt is meant "
                f"not to be deterministic, say reproducible=False"
            )
        return second

    def _run_once(
        self, index: int, partition: int, batch: BatchInfo, packets: list[bytes], loads: Loads
    ) -> _Output:
        self._runs += 1
        stage = self._plan.stages[index]
        run = TaskRun(f"{self._life}.{batch.number}.{self._attempt}.{self._runs}")
        stores: dict[str, MemoryStore] = {}
        job = StageJob(
            worker=self._chance.pick(self._processes),
            stage=stage,
            partition=partition,
            batch=batch,
            attempt=run.name,
            store=lambda name: stores.setdefault(name, self._disk.copy(name)),
        )
        self._watch.running(run)
        mine = loads.get(partition, ()) if stage.kind is StageKind.READ else ()
        sent, reports = job.run(list(packets), mine)
        output = _Output(run, sent, reports, stores, fingerprint(packets, sent))
        if stage.kind is StageKind.STATE:
            self._state_runs.append(((index, partition), output))
        return output

    def _meddle(self, sent: list[Delivery], stage: int) -> list[Delivery]:
        """Return the sent packets that arrive; packets for the driver pass no other task."""
        arrived: list[Delivery] = []
        for home, data in sent:
            if read_head(data).target == DRIVER:
                arrived.append((home, data))
                continue
            where = f"batch {self._number}, after stage {stage}"
            copies = 0 if self._chance.strikes("lost_packet", where) else 1
            copies += self._chance.strikes("doubled_packet", where)
            self._damaged |= copies != 1
            arrived += [(home, data)] * copies
        return arrived

    def _perhaps_lose_job(self, stage: int) -> None:
        where = f"batch {self._number}, attempt {self._attempt}, after stage {stage}"
        if self._attempt <= _MAX_LOST_JOBS and self._chance.strikes("lost_job", where):
            raise JobError("alone, it lost its job")


def _tapped(sent: list[Delivery]) -> list[Packet]:
    packets = [Packet.decode(data) for _, data in sent]
    tapped = [packet for packet in packets if packet.head.kind is Kind.DATA]
    return sorted(tapped, key=lambda packet: packet.head.order)
