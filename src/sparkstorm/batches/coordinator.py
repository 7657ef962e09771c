"""The coordinator: plans batches, judges their results, gives sources their verdicts.

The life of a batch, one method each, called in this order (:mod:`batch` has its phases):

1. ``next_batch(n)``  every batch before n is committed: verdicts go out; then n is planned, and its
                      plan written to the checkpoint
2. ``loads(n)``       what each partition reads
3. ``info(n)``        the facts that its tasks need; again after ``leave_out`` if the job failed
4. ``finish(n, …)``   the job has run: its outcome is written to the checkpoint. If the state that
                      Spark would commit may not be that of the acked tuples, or if batches happen
                      exactly once and this one has failed, it is rolled back: once more from 3.
5. ``apply(n, …)``    the committers apply it; Spark may commit

The coordinator starts no threads, and does no I/O but by the parts that it is made of
(:mod:`assembly`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.agenda import Agenda
from sparkstorm.batches.batch import Batch, Event, Phase
from sparkstorm.batches.bookkeeper import Bookkeeper
from sparkstorm.batches.fault import NO_VERDICTS, Fault
from sparkstorm.batches.job_result import JobResult
from sparkstorm.batches.recovery.handover import Handover
from sparkstorm.batches.transactions import Transactions, Wait
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.clock import Clock
from sparkstorm.metrics import Pace, Statistics, Window
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.sources import Sources

__all__ = ["Coordinator"]


@final
class Coordinator:
    """The batches of one running topology; thread-safe.

    :func:`sparkstorm.batches.assembly.make_coordinator` makes one with all its parts.

    Args:
        plan: the topology's plan.
        clock: the time.
        sources: all sources of the topology.
        agenda: plans batches.
        bookkeeper: gives verdicts.
        handover: takes the checkpoint over from the driver before, and leaves it to the next.
        transactions: makes batches happen exactly once; None if they happen at least once.
        fault: whether something went wrong half way.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        *,
        sources: Sources,
        agenda: Agenda,
        bookkeeper: Bookkeeper,
        handover: Handover,
        transactions: Transactions | None,
        fault: Fault,
    ) -> None:
        self.hosted, self.partitioned = sources.hosted, sources.partitioned
        self.arrived = sources.arrived
        self._plan = plan
        self._clock = clock
        self._sources = sources
        self._agenda = agenda
        self._bookkeeper = bookkeeper
        self.observe = bookkeeper.observe
        self.inquiry = bookkeeper.inquiry
        """Tells people of messages, under the coordinator's lock."""
        self._handover = handover
        self._transactions = transactions
        self._fault = fault
        self._lock = self.inquiry.lock
        self._batches: dict[int, Batch] = {}
        self._last = -1
        self._intake_open = True
        self._active = True
        self._polled = self._committed = clock.monotonic()

    # --- the life of the driver ------------------------------------------------------------------

    def open(self, log: EngineLog) -> None:
        """Open the partitioned spouts, with the progress of an earlier driver if there is one.

        Hosted spouts are opened by whoever runs their threads.

        Args:
            log: the batches that the engine has heard of, and committed.

        Raises:
            CheckpointError: what an earlier driver, or the engine, has written is damaged.
        """
        batch = self._handover.recover(log)
        if batch is not None:
            self._last = batch.plan.number
            self._batches[self._last] = batch
        was = None if batch is None else batch.predecessor
        progress_of = (lambda _: None) if was is None else was.progress_of
        self._sources.recover(progress_of, self._clock.monotonic())
        if self._transactions is not None:
            self._transactions.open()

    def close(self, clean: bool = True) -> None:
        """Close the partitioned spouts; if ``clean``, write down that all verdicts were given.

        Without ``clean`` the next driver takes this one for dead, perhaps killed by a message.
        """
        with self._lock:
            if clean and self._last >= 0 and not self._fault:
                self._handover.leave(self._last, self._batches.get(self._last))
        self._sources.close()
        if self._transactions is not None:
            self._transactions.close()

    def close_intake(self) -> None:
        """Plan no new messages any more, only retries of what was given out."""
        with self._lock:
            self._intake_open = False

    def set_active(self, active: bool) -> None:
        """Plan new messages of partitioned spouts, or only retries; hosted spouts rest apart."""
        with self._lock:
            self._active = active

    # --- the life of a batch ---------------------------------------------------------------------

    def next_batch(self, number: int, *, even_empty: bool = False) -> bool:
        """Note that every batch before ``number`` is committed, and plan batch ``number``.

        Returns whether there is a batch; if not, ask again later (``arrived`` is set when a hosted
        spout has emitted). With ``even_empty`` there always is a batch.

        Raises:
            SupersededError: another run has taken over the checkpoint; no verdicts were given.
            CheckpointError: verdicts could not be given, or no batch be planned, now or earlier;
            the
                run must end.
        """
        with self._lock, self._fault.kept(NO_VERDICTS):
            self._polled = self._clock.monotonic()
            for done in sorted(n for n in self._batches if n < number):
                self._commit(self._batches.pop(done))
            self._bookkeeper.expire(self._clock.monotonic())
        with self._lock:
            self._sources.look(self._clock.monotonic())
        self._bookkeeper.tell_taps()
        with self._lock:
            return number in self._batches or self._plan_batch(number, even_empty)

    def loads(self, number: int) -> Mapping[int, list[Load | SystemPacket]]:
        """Return the loads of each partition; Spark asks only to run the batch.

        The question shows that the batch is not committed.
        """
        with self._lock:
            batch = self._batches[number]
            recovered = batch.phase is Phase.RECOVERED
            batch.start(self._clock.monotonic())
            if recovered:
                self._handover.plan_again(batch)
                self._bookkeeper.count_again(batch.plan)
            if batch.phase is Phase.PLANNED:
                self._handover.write(batch)
            return batch.plan.by_partition(self._plan.partitions)

    def info(self, number: int) -> BatchInfo:
        """Return the facts for the tasks of a planned batch."""
        with self._lock:
            return replace(self._batches[number].info, levels=self.inquiry.levels.known)

    def leave_out(
        self, number: int, excluded: Sequence[RootRange], poisons: Mapping[int, str]
    ) -> None:
        """Leave roots out of the next run of a batch whose job failed; they will be lost.

        Args:
            number: the batch's number.
            excluded: all roots to leave out.
            poisons: the roots among them that failed the job alone, with what each did.
        """
        with self._lock:
            self._batches[number].leave_out(excluded, poisons)

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
        with self._lock:
            lines = self._bookkeeper.hear_lines(result.reports)
        self._bookkeeper.tell_lines(lines)  # at once, whatever becomes of the batch
        with self._lock:
            batch = self._batches[number]
            wait = self._judge(batch, result)
            if wait is not None:
                self._bookkeeper.note_rollback()
                return wait
            if self.partitioned and self._plan.tracked:
                self._handover.leave_outcome(batch)
            if self._transactions is not None:
                self._transactions.decide(batch)
            batch.advance(Event.DECIDED)
            if self._transactions is None:
                batch.advance(Event.APPLIED)
            return None

    def apply(self, number: int, wait: Wait) -> None:
        """Have the committers apply a finished batch, if there are any; then Spark may commit.

        The call takes as long as the committers do, and holds up nobody but the batch.

        Raises:
            CommitError: a committer failed too often.
            SupersededError: another run has taken over the checkpoint.
        """
        if self._transactions is not None:
            batch = self._batches[number]
            self._transactions.apply(batch, wait)
            batch.advance(Event.APPLIED)

    def _plan_batch(self, number: int, even_empty: bool) -> bool:
        self.arrived.clear()
        now = self._clock.monotonic()
        batch = self._agenda.next_batch(
            number,
            now,
            fresh=self._intake_open and self._active,
            # not if the run is about to end
            for_ticks=self._intake_open or bool(self._bookkeeper.pending),
            even_empty=even_empty,
        )
        if batch is None:
            return False
        self._batches[number], self._last = batch, number
        begun = self._clock.monotonic()
        batch.times.plan_secs = begun - now
        batch.traced = self._bookkeeper.begin(batch.plan, begun)
        batch.followed = tuple(self.inquiry.followed())
        self._agenda.tidy()
        return True

    def _judge(self, batch: Batch, result: JobResult) -> float | None:
        """Accept a job's result, or roll back and return the seconds after which to run again."""
        if differing := result.runs.differing():
            batch.start_over(differing)
            return 0.0
        batch.ran(result, len(self._plan.ackers), self._clock.monotonic())
        if self._transactions is not None:
            wait = self._transactions.judge(batch)
            if wait is not None:
                return wait
        batch.advance(Event.JUDGED)
        return None

    def _commit(self, batch: Batch) -> None:
        recovered = batch.phase is Phase.RECOVERED
        batch.advance(Event.COMMITTED)
        now = self._committed = self._clock.monotonic()
        if recovered:
            self._bookkeeper.settle_recovered(batch, self._handover.verdicts(batch), now)
        else:
            self._bookkeeper.settle(batch, now)
            self._agenda.observe(batch, now)

    # --- how the run stands ----------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        """Whether nothing is pending, and the spouts (if the intake is open) have nothing more."""
        with self._lock:
            if self._fault:  # some verdicts were not given
                return False
            if self._agenda.due or self._bookkeeper.waiting:
                return False
            if any(batch.matters for batch in self._batches.values()):
                return False
            return self._sources.drained(fresh=self._intake_open)

    def statistics(self) -> Statistics:
        """How the topology stands now."""
        with self._lock:
            statistics, now = self._bookkeeper.statistics(), self._clock.monotonic()
            for number, batch in sorted(self._batches.items()):
                if batch.runs and batch.times.started is not None:
                    secs = now - batch.times.started
                    return replace(statistics, running_batch=number, running_secs=secs)
            return statistics

    def window(self, secs: int | None = None) -> Window:
        """Return the metrics of the last 600, 10,800 or 86,400 seconds; of all time for None."""
        with self._lock:
            return self._bookkeeper.window(secs, self._clock.monotonic())

    def pace(self) -> Pace:
        """Return whether batches go on."""
        with self._lock:
            now = self._clock.monotonic()
            return Pace(
                polled_secs=now - self._polled,
                committed_secs=now - self._committed,
                waiting=self._sources.waiting,
                spouts=self._sources.uncalled_secs(now, now - self._polled),
            )

    @property
    def ledger_bytes(self) -> int:
        """Bytes that the ledger holds for roots that are open between batches."""
        with self._lock:
            return self._bookkeeper.nbytes

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending and ready."""
        return self._agenda.intake_limit(task) if self._intake_open else 0

    def __repr__(self) -> str:
        return f"Coordinator({self._plan.name}: {self._bookkeeper!r})"
