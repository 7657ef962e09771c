"""foreachBatch: Spark calls it for each micro-batch, and it carries out the drive of that batch."""

import threading
import time
from typing import final

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.drive import (
    Apply,
    BatchDriver,
    JobError,
    Pause,
    Probe,
    RollBack,
    RunBatch,
    Step,
    obey,
)
from sparkstorm.batches.job_result import JobResult
from sparkstorm.clock import SystemClock
from sparkstorm.errors import BatchError, SparkstormError
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.jobs import BatchJobs
from sparkstorm.tasks.report import Report, newest
from sparkstorm.tasks.state_runs import StateRun, StateRuns, Told

__all__ = ["BatchRunner"]


@final
class BatchRunner:
    """Spark calls it for each micro-batch, on a thread of the query; one at a time.

    Spark commits the batch when the call returns.

    Args:
        coordinator: what knows the batches.
        plan: the topology's plan.
        told: what tasks tell, beside their packets.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        plan: Plan,
        told: "Accumulator[list[Told]]",
    ) -> None:
        self.error: SparkstormError | None = None
        self._stopping = threading.Event()
        self._coordinator = coordinator
        self._plan = plan
        self._told = told
        self._driver = BatchDriver(coordinator, plan, SystemClock())
        self._query: StreamingQuery | None = None
        self._attached = threading.Event()

    def attach(self, query: StreamingQuery) -> None:
        """Tell it which query calls it; the first batch waits for that."""
        self._query = query
        self._attached.set()

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Run a batch."""
        try:
            self._attached.wait()
            assert self._query is not None  # noqa: S101 - set before the event
            self.run(BatchJobs(frame, self._query), number)
        except SparkstormError as error:
            self.error = error
            raise

    def stop(self) -> None:
        """Give up what is under way: the query is being stopped."""
        self._stopping.set()

    def run(self, jobs: BatchJobs, number: int) -> None:
        """Carry out the drive of a batch by its jobs."""
        batch = _SparkBatch(number, jobs, self._plan, self._coordinator, self._told, self._stopping)
        obey(self._driver.drive(number), batch.perform)


@final
class _SparkBatch:
    """Carries out the steps of one batch on Spark."""

    def __init__(
        self,
        number: int,
        jobs: BatchJobs,
        plan: Plan,
        coordinator: Coordinator,
        told: "Accumulator[list[Told]]",
        stopping: threading.Event,
    ) -> None:
        self._number = number
        self._jobs = jobs
        self._plan = plan
        self._coordinator = coordinator
        self._told = told
        self._stopping = stopping
        self._reports: list[Report] = []
        self._runs: list[StateRun] = []

    def perform(self, step: Step) -> JobResult:
        """Carry out a step.

        Raises:
            JobError: its job failed.
            BatchError: the run is being stopped.
        """
        match step:
            case RunBatch() | Probe():
                return self._run(step)
            case RollBack():
                self._jobs.roll_back()
                self._reports, self._runs = [], []
            case Pause(secs):
                self._pause(secs)
            case Apply():
                self._coordinator.apply(self._number, self._pause)
        return JobResult()

    def _run(self, step: RunBatch | Probe) -> JobResult:
        """Run a job. What its tasks told counts even if it fails; those of a probe are silent.

        Spark uses the output of a failed job's finished tasks in the next job, and does not run
        those tasks again.
        """
        started = time.monotonic()
        try:
            rows = self._jobs.run(step.info, step.limit_secs)
        except JobError as error:
            if self._stopping.is_set():  # whoever stops the query has cancelled the job
                raise _stopped() from error
            raise
        finally:
            self._note_told()
        secs = time.monotonic() - started
        if isinstance(step, Probe):
            return JobResult(secs=secs)
        runs = StateRuns(self._runs, self._jobs.states(self._plan))
        return JobResult(rows=rows, reports=newest(self._reports), runs=runs, secs=secs)

    def _note_told(self) -> None:
        for told in self._told.value:
            if isinstance(told, StateRun):
                self._runs.append(told)
            else:
                self._reports.append(told)
        self._told.value = []

    def _pause(self, secs: float) -> None:
        if self._stopping.wait(secs):
            raise _stopped()


def _stopped() -> BatchError:
    return BatchError("the run is being stopped; this batch will be run again")
