"""The in-process runner: the same code as on Spark, one batch after the other, in this thread."""

import secrets
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, final

from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.drive import (
    Apply,
    BatchDriver,
    Drive,
    Pause,
    Probe,
    RollBack,
    RunBatch,
    Step,
    obey,
)
from sparkstorm.batches.events.taps import Tap
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles, MemoryFiles
from sparkstorm.checkpoint.seal import read_sealed, write_sealed
from sparkstorm.clock import Clock, SystemClock
from sparkstorm.config import Config
from sparkstorm.errors import BatchError
from sparkstorm.local.jobs import Jobs, Loads, LocalJobs
from sparkstorm.metrics import Statistics
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.state.image import state_of
from sparkstorm.topology.graph import Topology

__all__ = ["LocalRunner"]

_COMMITTED = "local/committed"
"""The file with the number of committed batches, as Spark's checkpoint has them on Spark."""

_ANEW = "Restore it from a backup, or give other files"

_MAX_ROLLBACKS = 10_000
"""How often a batch is run again: nothing sleeps here, so better times do not come by waiting."""

_MAX_STEPS = 100_000
"""How often a hosted spout is asked before a batch is run without waiting for more."""


@final
class LocalRunner:
    """Runs a topology in this process and thread, a batch per :meth:`step`.

    Only the movement of packets differs from Spark. Nothing sleeps: time goes by the clock. Use the
    runner as a context manager, so that spouts are closed.

    Args:
        topology: the topology.
        name: its name.
        config: the settings.
        partitions: how many partitions to play.
        taps: components whose tuples are handed to ``on_tap``.
        clock: the time.
        files: keeps plans and outcomes; the files of an earlier run resume that run.
        jobs: runs the jobs, if not this thread.
        on_tap: gets tapped tuples, once they are committed; an error of the tap is only logged.
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
        jobs: Callable[[Plan], Jobs] | None = None,
        on_tap: Tap | None = None,
    ) -> None:
        self.plan: Plan = make_plan(
            topology, name=name, config=config, partitions=partitions, taps=taps
        )
        self._files = files or MemoryFiles()
        self._clock = clock or SystemClock()
        self.coordinator = make_coordinator(
            self.plan,
            self._files,
            self._clock,
            run=secrets.token_hex(4),
            on_tap=on_tap,
        )
        self._jobs: Jobs = LocalJobs(self.plan) if jobs is None else jobs(self.plan)
        self._driver = BatchDriver(self.coordinator, self.plan, self._clock)
        self._loads: Loads = {}
        self._number = 0
        self._rollbacks = 0
        self._active = True

    def __enter__(self) -> "LocalRunner":
        self._number = int(read_sealed(self._files, _COMMITTED, _ANEW) or 0)
        self.coordinator.open(EngineLog(heard=self._number - 1, committed=self._number - 1))
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
            task.shut()
        self.coordinator.close(clean=kind is None)
        self._jobs.close()

    def activate(self) -> None:
        """Let hosted spouts emit again."""
        self._set_active(True)

    def deactivate(self) -> None:
        """Let hosted spouts emit nothing until :meth:`activate`; verdicts still reach them."""
        self._set_active(False)

    def step(self) -> bool:
        """Ask the spouts for messages and run one batch; return whether there was anything.

        A driver can die between any two of the calls below, so each is a method of its own
        (see :mod:`sparkstorm.testing.simulation`).
        """
        self.ask_spouts()
        if not self.plan_batch():
            return False
        obey(self.drive(), self.perform)
        self.commit()
        return True

    def ask_spouts(self) -> None:
        """Let the hosted spouts emit what they have, within the limits, if they are active."""
        if self._active:
            for task in self.coordinator.hosted.values():
                self._fill(task)

    def plan_batch(self) -> bool:
        """Give the verdicts of committed batches, and plan a batch; return whether there is one.

        An uncommitted batch of an earlier driver comes first.
        """
        return self.coordinator.next_batch(self._number)

    def drive(self) -> Drive:
        """Return the steps of the planned batch, for :meth:`perform`; after them, commit."""
        self._loads = self.coordinator.loads(self._number)
        self._rollbacks = 0
        return self._driver.drive(self._number)

    def perform(self, step: Step) -> JobResult:
        """Carry out one step of :meth:`drive`.

        Raises:
            JobError: its job failed.
            BatchError: the batch was rolled back too often.
        """
        match step:
            case RunBatch(info) | Probe(info):
                return self._jobs.run(info, self._loads)
            case RollBack():
                self._rollbacks += 1
                if self._rollbacks > _MAX_ROLLBACKS:
                    raise BatchError(
                        f"batch {self._number} was rolled back {_MAX_ROLLBACKS:,} times"
                    )
                self.roll_back()
            case Pause():
                """Nothing sleeps: a batch is run again at once."""
            case Apply():
                self.apply()
        return JobResult()

    def run_job(self) -> JobResult:
        """Run the job of the planned batch."""
        loads = self.coordinator.loads(self._number)
        return self._jobs.run(self.coordinator.info(self._number), loads)

    def finish(self, result: JobResult) -> bool:
        """Hand the result of the batch's job to the coordinator, which writes down the outcome.

        Returns whether the batch may be committed; if not, roll back and run the job again.
        """
        return self.coordinator.finish(self._number, result) is None

    def roll_back(self) -> None:
        """Forget the state that the job wrote."""
        self._jobs.roll_back()

    def apply(self) -> None:
        """Have the committers apply the batch; a failed committer is asked again at once."""
        self.coordinator.apply(self._number, lambda secs: None)

    def commit(self) -> None:
        """Commit the batch with its state. The next plan gives the verdicts."""
        self._jobs.commit()
        self._number += 1
        write_sealed(self._files, _COMMITTED, str(self._number).encode())

    def run_until_idle(self, max_batches: int = 10_000) -> Statistics:
        """Run batches until the spouts have nothing more for now, and give all verdicts."""
        idle = 0
        for _ in range(max_batches):
            # a step without a batch still gives verdicts, upon which spouts may emit again
            idle = 0 if self.step() else idle + 1
            if idle == 2:
                break
        return self.statistics()

    @property
    def number(self) -> int:
        """The number of the batch that is planned next, or in work: all before are committed."""
        return self._number

    def statistics(self) -> Statistics:
        """How the topology stands."""
        return self.coordinator.statistics()

    def state(self, component: str) -> dict[Any, Any]:
        """Return the committed state of a stateful bolt, of all its tasks together.

        Without fields grouping several tasks may hold a key; one of their values is returned.
        """
        found: dict[Any, Any] = {}
        for namespace, store in self._jobs.stores().items():
            if namespace.rpartition("/")[0] == component:
                image = state_of(self.plan, component)
                image.load(store)
                found.update(image.items())
        return found

    def _set_active(self, active: bool) -> None:
        self._active = active
        for task in self.coordinator.hosted.values():
            (task.spout.activate if active else task.spout.deactivate)()

    def _fill(self, task: HostedTask) -> None:
        for _ in range(_MAX_STEPS):
            if not task.step(self.coordinator.intake_limit(task.task)):
                return
