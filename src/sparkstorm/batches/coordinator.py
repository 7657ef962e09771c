"""The coordinator: plans batches, keeps the ledger, gives spouts their verdicts.

The life of a batch, one method each, called by the runner in this order:

1. ``next_batch(n)``  every batch before n is committed: verdicts go out; then n is planned and
                      made durable
2. ``loads(n)``       what each partition reads
3. ``info(n)``        what its tasks need to know; again after ``leave_out`` if the job failed
4. ``finish(n, …)``   the job is done: its outcome is made durable. If the state that Spark would
                      commit may not be that of what was acked, or if batches happen exactly once
                      and this one has failed, it is rolled back: once more from 3.
5. ``apply(n, …)``    the committers apply it; Spark may commit

It starts no threads, and does no I/O but through the ``files`` it is given and what spouts and
committers do.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import final

from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.tally import HeldRoots, RootRange, locate
from sparkstorm.batches.batch import BatchRecord
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.counts import Counts
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.events.taps import Tap, Taps
from sparkstorm.batches.events.ticks import Ticks
from sparkstorm.batches.fault import Fault
from sparkstorm.batches.job_result import JobResult
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planner import BatchPlanner
from sparkstorm.batches.recovery.outcome import Outcome
from sparkstorm.batches.recovery.succession import Succession
from sparkstorm.batches.spout_tasks import Deliver, SpoutTasks
from sparkstorm.batches.transactions import Pause, Transactions
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.lease import Fence, Unfenced
from sparkstorm.clock import Clock
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.metrics import Statistics, TaskMetrics, merge_task_metrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.partitioned.task import partitions_of
from sparkstorm.sources.replayed.replays import Replays
from sparkstorm.tasks.report import LogLine, Report
from sparkstorm.texts.logs import logger_of

__all__ = ["Coordinator"]

_NO_VERDICTS = "messages could not be given their verdicts"
_NO_PLAN = "no batch could be planned"


@final
class Coordinator:
    """The delivery of one running topology; thread-safe.

    Args:
        plan: the topology's plan.
        files: where plans and outcomes are kept.
        fence: stands between this driver and the files, if others can reach them.
        clock: where the time comes from.
        run: a name for this driver's life.
        deliver: how verdicts reach hosted tasks.
        on_log: told of lines that components log.
        on_tap: told of tapped tuples.
        office: where dead letters go; by default, into the files.
    """

    def __init__(
        self,
        plan: Plan,
        files: CheckpointFiles,
        clock: Clock,
        *,
        run: str = "",
        fence: Fence | None = None,
        deliver: Deliver | None = None,
        on_log: Callable[[LogLine], None] | None = None,
        on_tap: Tap | None = None,
        office: DeadLetterOffice | None = None,
    ) -> None:
        config = plan.config
        office = office or DeadLetterOffice(plan.name, LetterStore(files), clock, run=run)
        self.arrived = threading.Event()
        self._plan = plan
        self._journal = Journal(files, fence or Unfenced(files))
        self._clock = clock
        self._on_log = on_log or _log
        self._taps = Taps(plan, on_tap)
        self._lock = threading.RLock()
        self._ledger = Ledger(
            config.message_timeout_secs if config.enable_message_timeouts else None,
            clock.monotonic(),
            on_progress=config.message_timeout_mode == "progress",
        )
        self._records: dict[int, BatchRecord] = {}
        self._unwritten: BatchPlan | None = None
        self._last = -1
        self._counts = Counts()
        self._components: dict[str, dict[int, TaskMetrics]] = {}
        self._intake_open = True
        self._fault = Fault()
        self._tasks = SpoutTasks(plan, office, self._counts, self.arrived, deliver, self._on_log)
        self.hosted, self.partitioned = self._tasks.hosted, self._tasks.partitioned
        self._office = office
        self._transactions = Transactions(plan, self._journal, files) if plan.exactly_once else None
        self._replays = Replays(plan, office)
        self._planner = BatchPlanner(plan, self.hosted, self.partitioned, self._replays, clock, run)
        self._succession = Succession(
            self._journal, self._planner, self._ledger, clock, exactly_once=plan.exactly_once
        )
        self._ended_roots = EndedRoots(plan)
        self._ticks = Ticks(plan, clock.monotonic())

    def open(self, log: EngineLog) -> None:
        """Open the partitioned spouts, with the progress of an earlier driver if there is one.

        Hosted spouts are opened by whoever runs their threads.

        Args:
            log: which batches the engine has heard of, and committed.

        Raises:
            CheckpointError: what an earlier driver, or the engine, has written is damaged.
        """
        plan = BatchPlan(number=-1, run="")
        if (last := self._journal.last(log)) is not None:
            plan = last
            committed = log.committed >= plan.number
            self._records[plan.number] = self._succession.take_up(plan, committed=committed)
            self._last = plan.number
        now = self._clock.monotonic()
        for number, task in self.partitioned.items():
            owner = self._plan.name_of(number)
            owed = [item for item in plan.outstanding if item.owner == owner]
            task.open(plan.cursors.get(owner), owed, now)
        if self._transactions is not None:
            self._transactions.open()
        self._replays.look(now)

    def close(self, clean: bool = True) -> None:
        """Close the partitioned spouts; if ``clean``, write down how far all verdicts were given.

        If not, it is for the next driver as if this one had died: perhaps of a message.
        """
        with self._lock:
            if clean and self._last >= 0 and not self._fault:
                self._write_last_word()
        for task in self.partitioned.values():
            task.spout.close()
        if self._transactions is not None:
            self._transactions.close()

    def close_intake(self) -> None:
        """Plan no new messages any more, only retries of what was given out."""
        with self._lock:
            self._intake_open = False

    def next_batch(self, number: int, *, even_empty: bool = False) -> bool:
        """Note that every batch before ``number`` is committed, and plan that one.

        Returns whether there is such a batch; if not, ask again later (``arrived`` is set when a
        hosted spout has emitted). If it may be ``even_empty``, there always is.

        Raises:
            SupersededError: another run has taken over the checkpoint; no verdicts were given.
            CheckpointError: verdicts could not be given, or no batch be planned, now or earlier;
                the run must end.
        """
        with self._lock, self._fault.kept(_NO_VERDICTS):
            for done in sorted(n for n in self._records if n < number):
                self._commit(self._records.pop(done))
            self._give_verdicts(self._ledger.expire(self._clock.monotonic()))
        with self._lock:
            self._replays.look(self._clock.monotonic())
        self._taps.tell()
        with self._lock:
            return number in self._records or self._plan_batch(number, even_empty)

    def loads(self, number: int) -> Mapping[int, list[Load | SystemPacket]]:
        """What each partition reads in a planned batch; asked only if the batch is to be run.

        That it is asked for shows, for a batch of an earlier driver, that it is not committed.
        """
        with self._lock:
            record = self._records[number]
            record.differed = 0
            if record.asked is None:
                record.asked = self._clock.monotonic()
            if record.recovered is not None:
                with self._fault.kept(_NO_PLAN):
                    self._succession.rerun(record, record.recovered)
                self._counts.note_planned(record.plan)
            if not record.durable:
                if record.decision is not None:
                    record.decision.check_committers(number, self._plan.committers)
                    if self._transactions is not None:
                        self._transactions.carry_on(record)  # first, so that it is never missing
                self._journal.write_plan(record.plan)
                record.durable = True
            return record.plan.by_partition(self._plan.partitions)

    def info(self, number: int) -> BatchInfo:
        """What the tasks of a planned batch need to know."""
        with self._lock:
            return self._records[number].info

    def leave_out(
        self, number: int, excluded: Sequence[RootRange], poisons: Mapping[int, str]
    ) -> None:
        """Leave roots out of the next attempt at a batch whose job failed; they will be lost.

        Of these, ``poisons`` are known to have failed the job on their own, with what each did.
        """
        with self._lock:
            record = self._records[number]
            record.excluded, record.poisons = tuple(excluded), dict(poisons)

    def finish(self, number: int, result: JobResult) -> float | None:
        """Judge the result of a batch's job, before Spark commits the batch.

        If Spark fails to commit, the batch is run and finished once more, and only the last result
        counts.

        Returns None, or the seconds after which the batch is to be run again from its beginning,
        with all state as it was before it.

        Raises:
            SparkstormError: a fault of the user's that must stop the topology.
            BatchError: the outcome is not whole, or cannot be brought in line with the state.
        """
        self._tell_lines(result.reports)
        with self._lock:
            record = self._records[number]
            if differing := result.runs.differing():
                record.note_differing(differing)
                self._counts.rollbacks += 1
                return 0.0
            outcomes = record.take_in(result.rows, len(self._plan.ackers))
            record.secs, record.finished = result.secs, self._clock.monotonic()
            record.reports = result.reports
            if self._transactions is not None:
                wait = self._transactions.judge(record)
                if wait is not None:
                    self._counts.rollbacks += 1
                    return wait
            if self.partitioned and self._plan.tracked:
                outcome = Outcome(rows=outcomes, excluded=record.excluded, poisons=record.poisons)
                self._journal.write_outcome(number, outcome.to_bytes())
            if self._transactions is not None:
                self._transactions.decide(record)
            return None

    def apply(self, number: int, pause: Pause) -> None:
        """Have the committers apply a finished batch, if there are any; then Spark may commit it.

        Takes as long as they do, and holds up nobody but the batch.

        Raises:
            CommitError: one of them could not.
            SupersededError: another run has taken over the checkpoint.
        """
        if self._transactions is not None:
            self._transactions.apply(self._records[number], pause)

    @property
    def drained(self) -> bool:
        """Whether nothing is pending, and the spouts (if the intake is open) have nothing more."""
        with self._lock:
            waiting = self._taps.waiting or self._ended_roots.due or self._ledger.pending
            if self._unwritten or waiting or any(r.matters for r in self._records.values()):
                return False
            if self._fault or (self._intake_open and self._replays.busy):
                return False  # in the first case some verdicts were not given
            return self._tasks.drained(fresh=self._intake_open)

    def statistics(self) -> Statistics:
        """How the topology stands now."""
        with self._lock:
            counts, tasks = self._counts, self._tasks
            return Statistics(
                emitted=counts.emitted,
                acked=counts.acked,
                failed=counts.failed,
                pending=tasks.pending + self._replays.pending,
                retried=counts.retried,
                rollbacks=counts.rollbacks,
                given_up=tasks.given_up + self._replays.given_up,
                left_failed=tasks.left_failed,
                failures=dict(counts.failures),
                dead_letters=self._office.written,
                dead_letter_faults=self._office.sink_faults,
                replayed=self._replays.replayed,
                batches=counts.batches,
                batch_secs=counts.batch_secs,
                batch_messages=counts.batch_messages,
                components={name: dict(tasks) for name, tasks in self._components.items()},
                partitions=partitions_of(self.partitioned.values(), self._components),
            )

    @property
    def ledger_bytes(self) -> int:
        """Bytes that the ledger holds for roots that are open between batches."""
        with self._lock:
            return self._ledger.nbytes

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending and ready."""
        return self._planner.intake_limit(task) if self._intake_open else 0

    def __repr__(self) -> str:
        return f"Coordinator({self._plan.name}: {self._ledger!r}, batches={self._counts.batches})"

    def _plan_batch(self, number: int, even_empty: bool) -> bool:
        self.arrived.clear()
        now = self._clock.monotonic()
        plan = self._unwritten
        if plan is None:
            with self._fault.kept(_NO_PLAN):
                plan = self._next_plan(number, now, even_empty)
        if plan is None:
            return False
        self._unwritten = plan  # if the checkpoint cannot be written to, it waits here
        self._journal.write_plan(plan)
        self._unwritten = None
        self._records[number] = BatchRecord(plan, planned=now)
        self._last = number
        self._ledger.begin(plan.ranges)
        self._counts.note_planned(plan)
        self._journal.purge()
        return True

    def _next_plan(self, number: int, now: float, even_empty: bool) -> BatchPlan | None:
        plan = self._planner.plan(number, fresh=self._intake_open, now=now)
        nothing = plan is None and not self._ended_roots.due and not self._tick_due(now)
        if nothing and not even_empty:
            return None
        plan = plan or self._planner.settled(number)
        return replace(plan, signals=self._ended_roots.take(), ticks=self._ticks.take(now))

    def _tick_due(self, now: float) -> bool:
        """Whether a batch is worth while for ticks alone: not if the run is about to end."""
        in_use = self._intake_open or self._ledger.pending
        return bool(in_use) and self._ticks.due(now)

    def _commit(self, record: BatchRecord) -> None:
        plan = record.plan
        if record.results is None:
            verdicts = self._succession.verdicts(record)
            self._counts.emitted += len(verdicts.acked) + len(verdicts.failed)
            self._give_verdicts(record.with_poisons(verdicts))
            self._counts.emitted += self._ack_untracked(plan)
            return
        now = self._clock.monotonic()
        self._merge_counts(record.reports)
        held = HeldRoots.concat([result.held for result in record.results])
        pending = (locate(plan.ranges, held.roots) >= 0) | self._ledger.is_open(held.roots)
        self._ended_roots.note_held(held, pending)
        verdicts = self._ledger.settle(plan.ranges, record.results, now)
        self._give_verdicts(record.with_poisons(verdicts))
        self._ack_untracked(plan)
        self._counts.batches += 1
        self._counts.batch_secs = record.secs
        self._counts.batch_messages = plan.messages
        self._planner.observe(messages=plan.messages, secs=record.cycle_secs(now))
        self._taps.add(record.tapped)

    def _ack_untracked(self, plan: BatchPlan) -> int:
        """Without ackers messages are acked as their batch is committed; return how many."""
        if self._plan.tracked:
            return 0
        self._journal.check()
        self._tasks.ack_untracked(plan)
        return plan.messages

    def _write_last_word(self) -> None:
        if not self._records:
            plan = self._planner.settled(self._last)
            self._journal.write_plan(replace(plan, clean=True, settled=True))
        elif (record := self._records[self._last]).recovered is None:
            self._journal.write_plan(replace(record.plan, clean=True))

    def _give_verdicts(self, verdicts: Verdicts) -> None:
        if not len(verdicts.acked) and not len(verdicts.failed):
            return  # asked many times a second when idle: the checkpoint may be far away
        self._journal.check()
        now = self._clock.monotonic()
        self._ended_roots.note_ended(verdicts.acked, verdicts.failed)
        self._tasks.give(verdicts, now)
        self._replays.deliver(verdicts.acked, verdicts.failed, now)

    def _tell_lines(self, reports: Sequence[Report]) -> None:
        for report in reports:
            for line in report.lines:
                self._on_log(line)

    def _merge_counts(self, reports: Sequence[Report]) -> None:
        with self._lock:
            news = [(r.component, r.task, r.metrics) for r in reports]
            merge_task_metrics(self._components, news)


def _log(line: LogLine) -> None:
    level = {"print": logging.INFO}.get(line.level, logging.getLevelName(line.level.upper()))
    number = level if isinstance(level, int) else logging.INFO
    logger = logger_of(f"sparkstorm.{line.component}")
    logger.log(number, "%s", line.text, extra={"trace": line.trace})
