"""The bookkeeper: settles committed batches by the ledger, and gives sources their verdicts."""

from collections.abc import Callable, Iterable, Sequence
from typing import final

from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.tally import HeldRoots, RootRange, locate
from sparkstorm.batches.batch import Batch
from sparkstorm.batches.counts import Counts, FirstFailures
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.events.taps import Taps
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.messages.inquiry import Inquiry
from sparkstorm.batches.messages.observer import Observer
from sparkstorm.batches.meter import Meter
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.metrics import Statistics, Window
from sparkstorm.sources.sources import Sources
from sparkstorm.tasks.report import LogLine, Report, log_line

__all__ = ["Bookkeeper"]


@final
class Bookkeeper:
    """Keeps the accounts of messages: open roots, verdicts, counters.

    Not thread-safe, but for :meth:`tell_taps` and :meth:`tell_lines`. A verdict is final, so each
    round asks the journal first whether this driver still holds the checkpoint.

    Args:
        ledger: the open roots.
        journal: knows whether this driver still holds the checkpoint.
        sources: all sources of the topology.
        ended_roots: hears of each root that has ended.
        taps: get the tapped tuples of committed batches.
        counts: the counters behind the statistics.
        dead_letters: counts the dead letters.
        meter: adds up the metrics of tasks.
        inquiry: tells people of messages, and keeps attempts at some of them.
        wall: the time, in seconds since 1970.
        tracked: whether there are ackers.
    """

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        sources: Sources,
        ended_roots: EndedRoots,
        taps: Taps,
        counts: Counts,
        dead_letters: DeadLetterQueue,
        meter: Meter,
        inquiry: Inquiry,
        wall: Callable[[], float],
        *,
        tracked: bool,
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._sources = sources
        self._ended_roots = ended_roots
        self._taps = taps
        self._counts = counts
        self._dead_letters = dead_letters
        self._first_failures = FirstFailures()
        self._tracked = tracked
        self._meter = meter
        self._chronicle = inquiry.chronicle
        self.inquiry = inquiry
        self._wall = wall

    @property
    def waiting(self) -> bool:
        """Whether a root is open, or a tapped tuple not handed out yet."""
        return bool(self._ledger.pending) or self._taps.waiting

    @property
    def pending(self) -> int:
        """How many roots are open."""
        return self._ledger.pending

    @property
    def nbytes(self) -> int:
        """Bytes that the ledger holds for roots that are open between batches."""
        return self._ledger.nbytes

    def begin(self, plan: BatchPlan, now: float) -> tuple[RootRange, ...]:
        """Open the roots of a batch whose plan is in the checkpoint; return those to trace."""
        self._ledger.begin(plan.ranges)
        self._meter.begin(plan.ranges, now)
        self._counts.note_planned(plan)
        return self._chronicle.begin(plan)

    def count_again(self, plan: BatchPlan) -> None:
        """Count the messages of a recovered batch that is run again; its roots are open already."""
        self._counts.note_planned(plan)

    def note_rollback(self) -> None:
        """Count that a batch is rolled back."""
        self._counts.rollbacks += 1

    def settle(self, batch: Batch, now: float) -> None:
        """Give the verdicts of a committed batch that this driver ran."""
        plan, results = batch.plan, batch.answers.results
        self._meter.note_batch(batch, now)
        self._chronicle.take(plan, batch.answers.reports)
        held = HeldRoots.concat([result.held for result in results])
        pending = (locate(plan.ranges, held.roots) >= 0) | self._ledger.is_open(held.roots)
        self._ended_roots.note_held(held, pending)
        self._give(batch.explained(self._ledger.settle(plan.ranges, results, now)), now)
        self._ack_untracked(plan)
        self._counts.note_batch(plan.messages, batch.times.job_secs)
        self._taps.add(batch.answers.tapped)

    def settle_recovered(self, batch: Batch, verdicts: Verdicts, now: float) -> None:
        """Give the verdicts of a committed batch that an earlier driver ran."""
        self._counts.emitted += len(verdicts.acked) + len(verdicts.failed)
        self._give(batch.explained(verdicts), now)
        self._counts.emitted += self._ack_untracked(batch.plan)

    def expire(self, now: float) -> None:
        """Fail the roots whose time is over."""
        self._give(self._ledger.expire(now), now)

    def tell_taps(self) -> None:
        """Hand out tapped tuples; to be called without a lock, since a tap may block."""
        self._taps.tell()

    def observe(self, observer: Observer) -> None:
        """Tell an observer of batches and messages from now on."""
        self._meter.observer = self._chronicle.observer = observer

    def hear_lines(self, reports: Sequence[Report]) -> list[LogLine]:
        """Return the lines of tasks with their messages, for :meth:`tell_lines`."""
        lines = list(self._sources.addressed(one for report in reports for one in report.lines))
        self._chronicle.lines.hear(lines)
        return lines

    def tell_lines(self, lines: Iterable[LogLine]) -> None:
        """Log lines of tasks; to be called without a lock, since a handler may block."""
        for line in lines:
            log_line(line)

    def statistics(self) -> Statistics:
        """How the topology stands now."""
        counts, sources = self._counts, self._sources
        return Statistics(
            emitted=counts.emitted,
            acked=counts.acked,
            failed=counts.failed,
            pending=sources.pending,
            retried=counts.retried,
            rollbacks=counts.rollbacks,
            given_up=sources.given_up,
            left_failed=sources.left_failed,
            failures=dict(counts.failures),
            dead_letters=self._dead_letters.written,
            dead_letter_faults=self._dead_letters.sink_faults,
            replayed=sources.replays.replayed,
            batches=counts.batches,
            batch_secs=counts.batch_secs,
            batch_messages=counts.batch_messages,
            components={name: dict(tasks) for name, tasks in self._meter.components.items()},
            partitions=sources.partitions(self._meter.components),
            timings=tuple(self._meter.timings),
        )

    def window(self, secs: int | None, now: float) -> Window:
        """Return the metrics of the last 600, 10,800 or 86,400 seconds; of all time for None."""
        return self._meter.window(secs, now)

    def _give(self, verdicts: Verdicts, now: float) -> None:
        """Give the sources their verdicts.

        Raises:
            SupersededError: another run has taken over the checkpoint; no verdict was given.
        """
        if not len(verdicts.acked) and not len(verdicts.failed):
            return  # an idle driver comes here many times a second; the checkpoint may be far away
        self._journal.check()
        self._ended_roots.note_ended(verdicts.acked, verdicts.failed)
        self._count(verdicts)
        self._chronicle.end(verdicts, self._counts.batches, self._wall())
        self._meter.note_verdicts(verdicts, now)
        self._meter.times.forget(self._ledger.open_roots)
        self._sources.deliver(verdicts, now)

    def _count(self, verdicts: Verdicts) -> None:
        self._counts.acked += len(verdicts.acked)
        self._counts.note_failed(verdicts.failed)
        verdicts.failed.share_groups()
        for failure, _ in verdicts.failed.counts():
            self._first_failures.show(failure)

    def _ack_untracked(self, plan: BatchPlan) -> int:
        """Ack the messages of a batch if there are no ackers; return how many."""
        if self._tracked:
            return 0
        self._journal.check()
        self._counts.acked += plan.messages
        self._sources.ack_untracked(plan.loads)
        return plan.messages

    def __repr__(self) -> str:
        return f"Bookkeeper({self._ledger!r}, batches={self._counts.batches})"
