"""The drive: the steps of one batch until the commit.

:meth:`BatchDriver.drive` decides and runs nothing itself: the drive yields steps, and a runner
carries them out. The runners are Spark's ``foreachBatch``, the in-process runner and the
simulation, so all three run a batch by the same rules::

    RunBatch ──passed──► judged ──whole──► Apply ──► the runner commits
      ▲ │failed             │ to be repeated
      │ ▼                   ▼
      │ Probe …           Pause ──► RollBack ──╮
      ╰───┴────────────────────────────────────╯

After a failed job a search finds the messages at fault (:mod:`poisons`), and the batch is run
without these messages.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

from sparkstorm.acking.tally import RootRange, merge_ranges
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.job_result import JobResult
from sparkstorm.batches.poisons.poison_search import (
    MAX_POISONS,
    Action,
    Poison,
    PoisonSearch,
    TimeLimits,
)
from sparkstorm.batches.poisons.search_log import SearchLog
from sparkstorm.clock import Clock
from sparkstorm.errors import BatchError
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.planning.plan import Plan

__all__ = [
    "Apply",
    "BatchDriver",
    "JobError",
    "Pause",
    "Probe",
    "RollBack",
    "RunBatch",
    "Step",
    "obey",
]


class JobError(Exception):
    """The job of a step failed; a runner throws the error into the drive.

    Attributes:
        hung: whether the job was cancelled because it took longer than allowed.
    """

    def __init__(self, message: str, *, hung: bool = False) -> None:
        super().__init__(message)
        self.hung = hung


@final
@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run the job of the batch; outputs and state count."""

    info: BatchInfo
    limit_secs: float


@final
@dataclass(frozen=True, slots=True)
class Probe:
    """Run a part of the batch on the side, to see whether the part fails."""

    info: BatchInfo
    limit_secs: float


@final
@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, unless the run is being stopped."""

    secs: float


@final
@dataclass(frozen=True, slots=True)
class RollBack:
    """Forget the outputs and the state of all jobs of the batch so far."""


@final
@dataclass(frozen=True, slots=True)
class Apply:
    """Have the committers apply the batch (:meth:`Coordinator.apply`)."""


Step: TypeAlias = RunBatch | Probe | Pause | RollBack | Apply
"""One thing for a runner to do."""

Drive: TypeAlias = Generator[Step, JobResult, None]
"""The steps of one batch; :func:`obey` carries them out."""


def obey(drive: Drive, perform: Callable[[Step], JobResult]) -> None:
    """Carry out all steps of a drive.

    Args:
        drive: the steps.
        perform: carries out one step. It returns the result of a job (an empty one for a step
            without a job), or raises :class:`JobError` if the job failed.
    """
    try:
        step = next(drive)
        while True:
            try:
                result = perform(step)
            except JobError as error:
                step = drive.throw(error)
            else:
                step = drive.send(result)
    except StopIteration:
        return
    finally:
        drive.close()


@final
@dataclass(slots=True)
class _Findings:
    """The findings of all searches of one batch; a roll-back does not undo them."""

    excluded: tuple[RootRange, ...] = ()
    poisons: dict[int, str] = field(default_factory=dict)


@final
class BatchDriver:
    """Decides what is run of each batch, one batch at a time.

    Args:
        coordinator: knows the batches, and judges their results.
        plan: the topology's plan.
        clock: the time.
        max_poisons: how many poisons one search looks for.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        plan: Plan,
        clock: Clock,
        *,
        max_poisons: int = MAX_POISONS,
    ) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._max_poisons = max_poisons
        self._exactly_once = plan.exactly_once
        self._timeout_secs = plan.config.batch_timeout_secs
        self._good_secs = 0.0

    def drive(self, number: int) -> Drive:
        """Yield the steps of a planned batch; after the last one the runner may commit.

        Raises:
            BatchError: the batch fails whatever is left out of it.
            SparkstormError: a fault of the user's that must stop the topology.
        """
        found = _Findings()
        self._coordinator.leave_out(number, (), {})  # an earlier query's findings may be there
        while (wait := (yield from self._attempt(number, found))) is not None:
            yield Pause(wait)
            yield RollBack()
        yield Apply()

    def _attempt(self, number: int, found: _Findings) -> Generator[Step, JobResult, float | None]:
        """Run a batch once; return the seconds after which to run the batch again, or None."""
        try:
            result = yield RunBatch(self._coordinator.info(number), self._timeout_secs)
        except JobError as error:
            result = yield from self._search(number, found, error)
        else:
            self._good_secs = result.secs
        return self._coordinator.finish(number, result)

    def _search(
        self, number: int, found: _Findings, error: JobError
    ) -> Generator[Step, JobResult, JobResult]:
        """Run a batch whose job failed without the messages at fault; return its result."""
        info = self._coordinator.info(number)
        messages = sum(span.count for span in info.ranges)
        search = PoisonSearch(info.ranges, hung=error.hung, max_poisons=self._max_poisons)
        limits = TimeLimits(self._timeout_secs, messages, self._good_secs)
        log = SearchLog(number, messages, str(error), self._clock)
        while not search.hopeless:
            action = search.action
            log.next(search)
            limit = limits.of(action, search.mistakes)
            left_out = merge_ranges([*info.excluded, *action.excluded])
            asked = replace(info, excluded=left_out, purpose=action.purpose)
            try:
                if action.purpose is not Purpose.BATCH:
                    result = yield Probe(asked, limit)
                    limits.passed(action, result.secs)
                    search.passed()
                    continue
                if self._exactly_once:  # messages left out from here on must not be in its state
                    yield RollBack()
                result = yield RunBatch(asked, limit)
            except JobError as failure:
                error = failure
                search.failed(hung=failure.hung)
            else:
                self._leave_out(number, found, search, action)
                log.done(search)
                return result
        raise BatchError(_hopeless(number, search.poisons, error)) from error

    def _leave_out(
        self, number: int, found: _Findings, search: PoisonSearch, action: Action
    ) -> None:
        """Add the findings of a search to the findings of the searches before.

        A search after a roll-back skips poisons found before, so the search does not find them
        again.
        """
        found.excluded = merge_ranges([*found.excluded, *action.excluded])
        found.poisons |= {poison.root: self._deed(poison) for poison in search.poisons}
        self._coordinator.leave_out(number, found.excluded, found.poisons)

    def _deed(self, poison: Poison) -> str:
        if poison.hung:
            return f"alone in its batch, it ran over the batch time-out of {self._timeout_secs:g} s"
        return "alone in its batch, it ended every process that worked on it"


def _hopeless(number: int, poisons: tuple[Poison, ...], error: JobError) -> str:
    if poisons:
        return (
            f"batch {number}: the first {len(poisons)} messages each fail alone, and none passes: "
            f"a bolt is at fault rather than the messages: {error}"
        )
    return f"batch {number} fails even without any tracked message: {error}"
