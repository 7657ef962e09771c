"""Fault simulation: a topology under crashes, losses and repetitions, all drawn from one seed.

Planning, execution, tracking and delivery are the engine's own; only the cluster
(:mod:`sparkstorm.testing.internal.cluster`), the clock and the driver's deaths are played. After
each step the invariants of delivery are checked by an observer that does not ask the engine:

- every message is pending, or acked, or given up: never two of these, never none;
- no ack before the commit of a batch that came after the emit;
- a verdict reaches the spout task that emitted, once for each emit;
- no message has more attempts than ``max_retries`` + 1;
- a task that is run again sends the same packets;
- once the faults have ended everything drains: nothing is pending, the ledger is empty.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from sparkstorm.batches.drive import Apply, RollBack, RunBatch, Step, obey
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.config import Config
from sparkstorm.errors import BatchError
from sparkstorm.local.runner import LocalRunner
from sparkstorm.metrics import Statistics
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.tasks.report import LINES
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.faults import Chance, Faults
from sparkstorm.testing.internal.cluster import Disk, RunWatch, SimulatedJobs, TaskRun
from sparkstorm.testing.internal.witness import BrokenPromise, Message, Witness
from sparkstorm.texts.logs import logger_of
from sparkstorm.topology.graph import Topology
from sparkstorm.verdicts import Failure

__all__ = ["Observer", "Outcome", "Simulation", "simulate"]

_TRACE_LINES = 60
_MAX_CALM_TURNS = 400


class Observer(RunWatch):
    """Sees a simulation from inside; the base class looks away. For checks of your own."""

    def running(self, run: TaskRun) -> None:
        """A run of a task begins."""

    def committed(self, number: int, runs: list[TaskRun], *, damaged: bool) -> None:
        """A batch is committed, made up of these runs."""

    def verdict(self, message: Message, failure: Failure | None) -> None:
        """A spout is about to hear of an ack (None) or a failure."""

    def driver_died(self) -> None:
        """The driver died; another one starts."""

    def settled(self, simulation: "Simulation") -> None:
        """A turn is over."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a simulation went.

    Attributes:
        seed: the seed; the same one repeats everything.
        acked: how often each message was acked, as (spout, message id).
        given_up: how often each message was given up.
        failures: how many attempts failed for each reason.
        faults: how often each fault struck.
        emitted: by component and stream, the tuples of committed batches, retries included.
        state: the committed state of each stateful bolt.
        statistics: of the last driver.
        batches: how many batches were committed.
        trace: what happened, in order.
    """

    seed: int
    acked: Mapping[Message, int]
    given_up: Mapping[Message, int]
    failures: Mapping[str, int]
    faults: Mapping[str, int]
    emitted: Mapping[tuple[str, str], list[tuple[Any, ...]]]
    state: Mapping[str, Mapping[Any, Any]]
    statistics: Statistics
    batches: int
    trace: tuple[str, ...]

    def values(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """The tuples that a component emitted to a stream in committed batches."""
        return list(self.emitted.get((component, stream), ()))


def simulate(
    topology: Topology,
    *,
    seed: int = 0,
    faults: Faults | None = None,
    turns: int = 12,
    config: Config | None = None,
    partitions: int = 2,
    taps: Iterable[str] | None = None,
    reproducible: bool = True,
    observer: Observer | None = None,
) -> Outcome:
    """Run a topology through random faults until it is drained; check the invariants all along.

    Its spouts must come to an end, and a hosted one should give out again what was not acked when
    it is opened anew: :class:`RequeueSpout` and :class:`LogSpout` do.

    Args:
        topology: the topology.
        seed: decides everything; a failing seed fails again in the same way.
        faults: how likely is what.
        turns: for how many turns faults come; then the world is calm.
        config: the settings.
        partitions: how many partitions to play.
        taps: the components whose tuples the outcome has; by default all.
        reproducible: whether all bolts are deterministic, which is then checked.
        observer: looks on, for checks of your own.

    Raises:
        BrokenPromise: an invariant did not hold; the text has the seed and what happened.
    """
    simulation = Simulation(
        topology,
        seed=seed,
        faults=faults,
        config=config,
        partitions=partitions,
        taps=taps,
        reproducible=reproducible,
        observer=observer,
    )
    return simulation.run(turns)


@final
class Simulation:
    """A topology, its sources, its checkpoint and its cluster, through all lives of the driver.

    :func:`simulate` draws what happens. For a story of your own call the steps of :attr:`runner`
    (``ask_spouts``, ``plan_batch``, ``run_job``, ``finish``, ``apply``, ``commit``), :meth:`crash`,
    and advance :attr:`clock`.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int = 0,
        faults: Faults | None = None,
        config: Config | None = None,
        partitions: int = 2,
        taps: Iterable[str] | None = None,
        reproducible: bool = True,
        observer: Observer | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.chance = Chance(seed, Faults() if faults is None else faults)
        self.lives = 0
        self._seed = seed
        self._observer = Observer() if observer is None else observer
        self._witness = Witness(self._verdict)
        self._witness.slow = partial(self.chance.strikes, "slow_spout")
        self._topology = self._witness.watch(topology)
        self._config = config or Config(retry_backoff_secs=0.1)
        self._partitions = partitions
        self._taps = tuple(topology.components if taps is None else taps)
        self._reproducible = reproducible
        self._files = _PerilousFiles(self.chance)
        self._disk = Disk()
        self._emitted: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        self._start()

    @property
    def runner(self) -> LocalRunner:
        """The driver that lives now."""
        return self._runner

    def run(self, turns: int) -> Outcome:
        """Run so many turns with faults, and then without until everything is drained."""
        try:
            with _without_lines():
                self._run(turns)
            self._check_drained()
        except BrokenPromise as broken:
            raise BrokenPromise(self._report(broken)) from broken
        outcome = self._outcome()
        with self._files.safe():
            self._runner.__exit__(None, None, None)
        return outcome

    def _run(self, turns: int) -> None:
        for _ in range(turns):
            self.turn()
        self.chance.calm = True
        self.chance.note("calm")
        for _ in range(_MAX_CALM_TURNS):
            if not self.turn() and self._runner.coordinator.drained:
                return

    def turn(self) -> bool:
        """Let time pass and run a batch, with all that may happen to it; whether there was one."""
        wait = self._config.message_timeout_secs / 3
        if self.chance.calm:  # so that the last retries come, too
            wait = max(wait, self._config.retry_backoff_max_secs)
        self.clock.advance(self.chance.pick((0.0, 0.1, wait)))
        try:
            busy = self._batch()
        except _DriverDiedError:
            self.crash()
            busy = True
        self._check_pending()
        self._observer.settled(self)
        return busy

    def crash(self) -> None:
        """The driver dies now, with all that it had in memory, and another one starts."""
        self._witness.driver_died()
        self._observer.driver_died()
        self._start()

    def _batch(self) -> bool:
        runner = self._runner
        runner.ask_spouts()
        self._peril("before the plan")
        if not runner.plan_batch():
            return False
        try:
            obey(runner.drive(), self._perform)
        except BatchError as error:  # Spark starts its query anew; here the driver, too
            self.chance.note(f"batch {runner.number} ends the run: {error}")
            raise _DriverDiedError from error
        self._peril("before the commit")
        runner.commit()
        self._peril("after the commit")
        return True

    def _perform(self, step: Step) -> JobResult:
        """Carry out a step of a batch, with all that may happen before and after it."""
        if isinstance(step, Apply) and self._runner.plan.exactly_once:
            self._peril("before the transaction")
        result = self._runner.perform(step)
        if isinstance(step, RunBatch):
            self._peril("after the job")
            if self.chance.strikes("late_outcome", f"batch {self._runner.number}"):
                self.clock.advance(2 * self._config.message_timeout_secs)
        elif isinstance(step, RollBack):
            self._peril("after a rollback")
        return result

    def _peril(self, moment: str) -> None:
        if self.chance.strikes("crash", f"batch {self._runner.number}, {moment}"):
            raise _DriverDiedError

    def _start(self) -> None:
        self.lives += 1
        self._runner = LocalRunner(
            self._topology,
            name="simulation",
            config=self._config,
            partitions=self._partitions,
            taps=self._taps,
            clock=self.clock,
            files=self._files,
            jobs=self._jobs,
        )
        with self._files.safe():
            self._runner.__enter__()
        self.chance.note(f"driver {self.lives} starts at batch {self._runner.number}")

    def _jobs(self, plan: Plan) -> SimulatedJobs:
        self._cluster = SimulatedJobs(
            plan,
            self.chance,
            self._disk,
            life=self.lives,
            reproducible=self._reproducible,
            watch=_Commits(self._witness, self._observer),
            on_tap=self._on_tap,
        )
        return self._cluster

    def _verdict(self, message: Message, failure: Failure | None) -> None:
        self.chance.note(f"{message}: {'acked' if failure is None else failure.reason.value}")
        self._observer.verdict(message, failure)

    def _on_tap(self, key: StreamKey, _: int, rows: list[tuple[Any, ...]]) -> None:
        self._emitted.setdefault((key.component, key.stream), []).extend(rows)

    def _check_pending(self) -> None:
        """Compare the pending messages of the engine with those that spouts wait for."""
        coordinator = self._runner.coordinator
        hosted = sum(task.pending for task in coordinator.hosted.values())
        if hosted != self._witness.open:
            raise BrokenPromise(
                f"the hosted spouts wait for {self._witness.open} verdicts, the engine has "
                f"{hosted} messages pending"
            )
        split = sum(task.pending for task in coordinator.partitioned.values())
        owed = self._witness.owed()
        if self.lives == 1 and split != len(owed):
            raise BrokenPromise(
                f"the partitioned spouts wait for {len(owed)} verdicts, the engine has {split} "
                f"messages pending"
            )

    def _check_drained(self) -> None:
        coordinator, statistics = self._runner.coordinator, self._runner.statistics()
        if not coordinator.drained or statistics.pending or coordinator.ledger_bytes:
            raise BrokenPromise(
                f"not drained {_MAX_CALM_TURNS} turns after the last fault: {coordinator!r}, "
                f"{statistics.pending} pending, {coordinator.ledger_bytes} bytes in the ledger"
            )
        if self._witness.owed():
            raise BrokenPromise(f"drained, and these have never ended: {self._witness.owed()}")

    def _outcome(self) -> Outcome:
        runner = self._runner
        return Outcome(
            seed=self._seed,
            acked=dict(self._witness.acked),
            given_up=dict(self._witness.given_up),
            failures=dict(self._witness.failures),
            faults=Counter(self.chance.counts),
            emitted=self._emitted,
            state={name: runner.state(name) for name in runner.plan.stateful_components()},
            statistics=runner.statistics(),
            batches=runner.number,
            trace=tuple(self.chance.trace),
        )

    def _report(self, broken: BrokenPromise) -> str:
        trace = self.chance.trace
        left = f"  … {len(trace) - _TRACE_LINES} lines before\n" * (len(trace) > _TRACE_LINES)
        lines = "\n".join(f"  {line}" for line in trace[-_TRACE_LINES:])
        return (
            f"{broken}\n\nseed={self._seed} repeats it, with the same topology and "
            f"{self.chance.faults}\nWhat happened:\n{left}{lines}"
        )


class _DriverDiedError(Exception):
    """The driver is dead: nothing that it would have done next happens."""


@final
class _PerilousFiles:
    """A checkpoint whose writer may die before or after any write of a plan or an outcome."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._files = MemoryFiles()
        self._safe = False

    @contextmanager
    def safe(self) -> Iterator[None]:
        """Nobody dies meanwhile."""
        self._safe = True
        yield
        self._safe = False

    def read(self, name: str) -> bytes | None:
        return self._files.read(name)

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        self._peril(name, "before")
        self._files.write(name, data, lasting=lasting)
        self._peril(name, "after")

    def create(self, name: str, data: bytes) -> bool:
        return self._files.create(name, data)

    def delete(self, name: str) -> None:
        self._files.delete(name)

    def names(self, folder: str) -> list[str]:
        return self._files.names(folder)

    def _peril(self, name: str, moment: str) -> None:
        ours = name.startswith(("plans/", "outcomes/"))
        if ours and not self._safe and self._chance.strikes("crash", f"{moment} writing {name}"):
            raise _DriverDiedError


@final
class _Commits:
    """Counts the commits for the witness and passes everything on."""

    def __init__(self, witness: Witness, observer: Observer) -> None:
        self._witness = witness
        self._observer = observer

    def running(self, run: TaskRun) -> None:
        self._observer.running(run)

    def committed(self, number: int, runs: list[TaskRun], *, damaged: bool) -> None:
        self._witness.commits += 1
        self._observer.committed(number, runs, damaged=damaged)


@contextmanager
def _without_lines() -> Iterator[None]:
    """Drop the lines of components: random faults make many, and the trace says more."""
    logger = logger_of(LINES)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
