"""The in-process runner: the same planning, execution and delivery, one batch after the other."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import final

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.config import Config
from sparkstorm.delivery.coordinator import Coordinator
from sparkstorm.delivery.files import CheckpointFiles, MemoryFiles
from sparkstorm.delivery.hosted import HostedTask
from sparkstorm.delivery.taps import Tap
from sparkstorm.execution.job import StageJob
from sparkstorm.execution.level import Workshop
from sparkstorm.execution.reading import Load, Signal
from sparkstorm.execution.report import LogLine
from sparkstorm.execution.state_log import MemoryStore
from sparkstorm.metrics import Statistics
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.topology.graph import Topology

__all__ = ["LocalRunner"]

_COMMITTED = "local/committed"
"""The file that says how many batches are committed, as Spark's checkpoint does there."""

_MAX_STEPS = 100_000
"""How often a hosted spout is asked before a batch is run without waiting for more."""


@final
class LocalRunner:
    """Runs a topology in this process and thread, a batch per :meth:`step`.

    Everything but the moving of packets is the code that runs on Spark. Nothing sleeps: time is
    what the clock says. Use it as a context manager, so that spouts are closed.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        name: str = "local",
        config: Config | None = None,
        partitions: int = 2,
        taps: Iterable[str] = (),
        clock: Clock | None = None,
        files: CheckpointFiles | None = None,
        on_tap: Tap | None = None,
        on_log: Callable[[LogLine], None] | None = None,
    ) -> None:
        self.plan: Plan = make_plan(
            topology, name=name, config=config, partitions=partitions, taps=taps
        )
        self._files = files or MemoryFiles()
        self.coordinator = Coordinator(
            self.plan,
            self._files,
            clock or SystemClock(),
            run=secrets.token_hex(4),
            on_tap=on_tap,
            on_log=on_log,
        )
        self._workshop = Workshop(self.plan)
        self._stores: dict[str, MemoryStore] = {}
        self._number = 0
        self._active = True

    def __enter__(self) -> "LocalRunner":
        self.coordinator.open()
        self._number = int(self._files.read(_COMMITTED) or 0)
        for task in self.coordinator.hosted.values():
            task.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self.coordinator.hosted.values():
            task.close()
        self.coordinator.close()
        self._workshop.cleanup()

    def activate(self) -> None:
        """Let hosted spouts emit again."""
        self._set_active(True)

    def deactivate(self) -> None:
        """Let hosted spouts emit nothing until :meth:`activate`; verdicts still reach them."""
        self._set_active(False)

    def step(self) -> bool:
        """Ask the spouts for messages and run one batch; returns whether there was anything."""
        if self._active:
            for task in self.coordinator.hosted.values():
                self._fill(task)
        if not self.coordinator.next_batch(self._number):
            return False
        rows = self._run(self._number)
        self.coordinator.finish(self._number, rows, secs=0.0)
        for store in self._stores.values():
            store.commit()
        self._number += 1
        self._files.write(_COMMITTED, str(self._number).encode())
        return True

    def run_until_idle(self, max_batches: int = 10_000) -> Statistics:
        """Run batches until the spouts have nothing more for now, and give all verdicts."""
        idle = 0
        for _ in range(max_batches):
            # a step without a batch still gives verdicts, upon which spouts may emit again
            idle = 0 if self.step() else idle + 1
            if idle == 2:
                break
        return self.statistics()

    def statistics(self) -> Statistics:
        """How the topology stands."""
        return self.coordinator.statistics()

    def _set_active(self, active: bool) -> None:
        self._active = active
        for task in self.coordinator.hosted.values():
            (task.spout.activate if active else task.spout.deactivate)()

    def _fill(self, task: HostedTask) -> None:
        limit = self.coordinator.intake_limit(task.task)
        for _ in range(_MAX_STEPS):
            if not task.step(limit):
                return

    def _run(self, number: int) -> list[bytes]:
        loads = self.coordinator.loads(number)
        boxes: dict[int, list[bytes]] = {}
        for stage in self.plan.stages:
            boxes = self._run_stage(stage, number, boxes, loads)
        return [data for box in boxes.values() for data in box]

    def _run_stage(
        self,
        stage: Stage,
        number: int,
        boxes: dict[int, list[bytes]],
        loads: Mapping[int, list[Load | Signal]],
    ) -> dict[int, list[bytes]]:
        moved: dict[int, list[bytes]] = {}
        reading = stage.kind is StageKind.READ
        for partition in range(self.plan.partitions):
            job = StageJob(
                workshop=self._workshop,
                stage=stage,
                partition=partition,
                batch=self.coordinator.info(number),
                attempt=f"{number}",
                store=self._store,
            )
            mine = loads.get(partition, []) if reading else []
            sent, reports = job.run(boxes.get(partition, []), mine)
            self.coordinator.note_reports(reports)
            for home, data in sent:
                moved.setdefault(home, []).append(data)
        return moved

    def _store(self, namespace: str) -> MemoryStore:
        return self._stores.setdefault(namespace, MemoryStore())
