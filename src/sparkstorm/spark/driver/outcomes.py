"""foreachBatch: run a batch's job, find out what it fails of, and hand its outcome over."""

import threading
import time
from dataclasses import replace
from typing import final

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sparkstorm.acking.tally import RootRange, merge_ranges
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.poison_search import Action, Poison, PoisonSearch, TimeLimits
from sparkstorm.errors import BatchError, SparkstormError
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.jobs import BatchJobs, JobError
from sparkstorm.tasks.report import Report, newest
from sparkstorm.tasks.state_runs import StateRun, StateRuns, Told
from sparkstorm.texts.logs import logger_of

__all__ = ["BatchRunner"]

_logger = logger_of(__name__)


@final
class BatchRunner:
    """Called by Spark for each micro-batch, on a thread of the query; one at a time.

    1. tell the tasks of the batch (a local property), run its action, with a time limit;
    2. if it fails, run what :class:`PoisonSearch` says, until the batch passes;
    3. hand the outcome to the coordinator; if it wants the batch rolled back, once more from 1;
    4. have it applied, if there are committers. Spark commits when this returns.

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
        self._timeout_secs = plan.config.batch_timeout_secs
        self._told = told
        self._reports: list[Report] = []
        self._runs: list[StateRun] = []
        self._excluded: tuple[RootRange, ...] = ()
        self._poisons: dict[int, str] = {}
        self._good_secs = 0.0
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
            self._run(BatchJobs(frame, self._query), number)
        except SparkstormError as error:
            self.error = error
            raise

    def stop(self) -> None:
        """Give up what is under way: the query is being stopped."""
        self._stopping.set()

    def _run(self, jobs: BatchJobs, number: int) -> None:
        self._excluded, self._poisons = (), {}
        self._runs = []
        self._coordinator.leave_out(number, (), {})  # what an earlier query may have left out
        while (wait := self._attempt(jobs, number)) is not None:
            self._pause(wait)
            self._roll_back(jobs)
        self._coordinator.apply(number, self._pause)

    def _attempt(self, jobs: BatchJobs, number: int) -> float | None:
        """Run a batch to its end; return the seconds after which to do so again, if need be."""
        self._reports = []
        started = time.monotonic()
        try:
            rows = self._act(jobs, self._coordinator.info(number), self._timeout_secs)
        except JobError as error:
            self._give_up_if_stopping(error)
            rows, secs = self._search(jobs, number, error)
        else:
            secs = self._good_secs = time.monotonic() - started
        runs = StateRuns(self._runs, jobs.states(self._plan))
        return self._coordinator.finish(number, rows, secs, newest(self._reports), runs)

    def _roll_back(self, jobs: BatchJobs) -> None:
        jobs.roll_back()
        self._runs = []

    def _pause(self, secs: float) -> None:
        if self._stopping.wait(secs):
            raise BatchError("the run is being stopped; this batch will be run again")

    def _search(self, jobs: BatchJobs, number: int, error: JobError) -> tuple[list[bytes], float]:
        """Run a batch whose job failed without what it fails of; return its rows and its time."""
        ranges = self._coordinator.info(number).ranges
        search = PoisonSearch(ranges, hung=error.hung)
        messages = sum(span.count for span in ranges)
        limits = TimeLimits(self._timeout_secs, messages, self._good_secs)
        log = _SearchLog(number, messages, error)
        while not search.hopeless:
            action = search.action
            log.next(search)
            started = time.monotonic()
            try:
                info = self._coordinator.info(number)
                left_out = merge_ranges([*info.excluded, *action.excluded])
                asked = replace(info, excluded=left_out, purpose=action.purpose)
                if self._plan.exactly_once and action.purpose is Purpose.BATCH:
                    self._roll_back(jobs)
                rows = self._act(jobs, asked, limits.of(action, search.mistakes))
            except JobError as failure:
                self._give_up_if_stopping(failure)
                error = failure
                search.failed(hung=failure.hung)
                continue
            secs = time.monotonic() - started
            if action.purpose is Purpose.BATCH:
                self._leave_out(number, search, action)
                log.done(action, search)
                return rows, secs
            limits.passed(action, secs)
            search.passed()
        raise BatchError(_hopeless(number, search.poisons, error)) from error

    def _act(self, jobs: BatchJobs, info: BatchInfo, limit: float) -> list[bytes]:
        """Run an action; what its tasks tell (those of probes are silent) counts if it fails, too.

        What its finished tasks have written may be used by the next one, without a word of theirs.
        """
        try:
            return jobs.run(info, limit)
        finally:
            for told in self._told.value:
                if isinstance(told, StateRun):
                    self._runs.append(told)
                else:
                    self._reports.append(told)
            self._told.value = []

    def _leave_out(self, number: int, search: PoisonSearch, action: Action) -> None:
        """Note what a search has shown, beside what one before it did if the batch was rolled back.

        That one was run without what had been found until then, so it could not find that again.
        """
        self._excluded = merge_ranges([*self._excluded, *action.excluded])
        self._poisons |= {poison.root: self._deed(poison) for poison in search.poisons}
        self._coordinator.leave_out(number, self._excluded, self._poisons)

    def _deed(self, poison: Poison) -> str:
        if poison.hung:
            return f"alone in its batch, it ran over the batch time-out of {self._timeout_secs:g} s"
        return "alone in its batch, it ended every process that worked on it"

    def _give_up_if_stopping(self, error: JobError) -> None:
        """Raise if the job was cancelled by whoever stops the query."""
        if self._stopping.is_set():
            raise error


def _hopeless(number: int, poisons: tuple[Poison, ...], error: JobError) -> str:
    if poisons:
        return (
            f"batch {number}: the first {len(poisons)} messages each fail alone, and none passes: "
            f"it is rather a bolt than the messages: {error}"
        )
    return f"batch {number} fails even without any tracked message: {error}"


@final
class _SearchLog:
    """Tells people how the search goes on."""

    def __init__(self, number: int, messages: int, error: JobError) -> None:
        self._number = number
        self._messages = messages
        self._started = time.monotonic()
        self._actions = 0
        _logger.warning("batch %s: the job of its %s messages failed: %s", number, messages, error)

    def next(self, search: PoisonSearch) -> None:
        """Say what is run now."""
        self._actions += 1
        action, found = search.action, len(search.poisons)
        if action.purpose is Purpose.BATCH:
            left = self._messages - action.messages
            _logger.warning(
                "batch %s: run again with %s messages, %s left out (%s found at fault)",
                self._number,
                action.messages,
                left,
                found,
            )
        else:
            _logger.info(
                "batch %s: %s %s of %s messages; the fault is in one of %s, %s found (action %s)",
                self._number,
                action.purpose,
                action.messages,
                self._messages,
                search.suspects,
                found,
                self._actions,
            )

    def done(self, action: Action, search: PoisonSearch) -> None:
        """Say how it ended."""
        _logger.warning(
            "batch %s: done with %s of %s messages after %s more actions in %.1f s; %s at fault, "
            "which will be given up",
            self._number,
            action.messages,
            self._messages,
            self._actions,
            time.monotonic() - self._started,
            len(search.poisons),
        )
