"""The meter: the metrics of committed batches, by component and task."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import final

from sparkstorm.acking.ids import SEQUENCE_BITS
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.batch import Batch
from sparkstorm.batches.message_times import MessageTimes, tasks_of
from sparkstorm.batches.messages.observer import Observer
from sparkstorm.metrics import (
    BatchTiming,
    Histogram,
    TaskMetrics,
    Window,
    Windows,
    merge_task_metrics,
)
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.report import Report

__all__ = ["Meter"]

_TIMINGS = 120
"""How many batches' timings are kept, for a picture of the last minutes."""


@final
class Meter:
    """Adds up what the tasks of committed batches counted; not thread-safe.

    Each batch counts once, however often Spark ran its tasks: the coordinator hands over the
    reports of the run that counts.

    Args:
        plan: the topology's plan.
        now: the time, on the clock of all other methods.
    """

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan = plan
        self._times = MessageTimes()
        self._windows = Windows(now)
        self.components: dict[str, dict[int, TaskMetrics]] = {}
        self.timings: deque[BatchTiming] = deque(maxlen=_TIMINGS)
        self.observer: Observer | None = None

    def begin(self, ranges: Sequence[RootRange], now: float) -> None:
        """Note the roots of a batch that is planned now."""
        self._times.begin(ranges, now)

    def note_batch(self, batch: Batch, now: float) -> None:
        """Take the counts of a committed batch's tasks, and the times of its steps."""
        reports = batch.answers.reports
        self._add([(report.component, report.task, report.metrics) for report in reports], now)
        self.timings.append(_timing(batch, reports, now))
        if self.observer is not None:
            self.observer.batch_committed(self.timings[-1], self._messages_of(batch))

    def note_verdicts(self, verdicts: Verdicts, now: float) -> None:
        """Count the ended messages of each spout task."""
        news = []
        for task in {*tasks_of(verdicts.acked), *tasks_of(verdicts.failed.roots)}:
            counts = self._ended(task, verdicts, now)
            news.append((self._plan.component_of(task), task, counts))
            if self.observer is not None:
                self.observer.messages_ended(self._plan.component_of(task), counts)
        self._add(news, now)

    def window(self, secs: int | None, now: float) -> Window:
        """Return the metrics of the last 600, 10,800 or 86,400 seconds; of all time for None."""
        return self._windows.last(secs, now)

    @property
    def times(self) -> MessageTimes:
        """When messages were planned."""
        return self._times

    def _add(self, news: list[tuple[str, int, TaskMetrics]], now: float) -> None:
        merge_task_metrics(self.components, news)
        self._windows.add(news, now)

    def _messages_of(self, batch: Batch) -> dict[str, int]:
        """Return the number of a batch's messages by spout."""
        found: Counter[str] = Counter()
        for planned in batch.plan.loads:
            found[self._plan.component_of(planned.load.task)] += planned.load.count
        return dict(found)

    def _ended(self, task: int, verdicts: Verdicts, now: float) -> TaskMetrics:
        first, stop = task << SEQUENCE_BITS, task + 1 << SEQUENCE_BITS
        start, end = verdicts.acked.searchsorted([first, stop])
        acked = verdicts.acked[start:end]
        failed = verdicts.failed.between(first, stop)
        failures: dict[str, int] = {}
        for failure, count in failed.counts():
            reason = failure.reason.value
            failures[reason] = failures.get(reason, 0) + count
        return TaskMetrics(
            acked=len(acked),
            failed=len(failed),
            failures=failures,
            complete=Histogram.of(self._times.ages(task, acked, now)),
        )


def _timing(batch: Batch, reports: Sequence[Report], now: float) -> BatchTiming:
    busiest: dict[str, float] = {}
    for report in reports:
        secs = report.metrics.process_secs
        busiest[report.component] = max(secs, busiest.get(report.component, 0.0))
    times = batch.times
    return BatchTiming(
        number=batch.plan.number,
        messages=batch.plan.messages,
        at=batch.plan.time,
        plan_secs=times.plan_secs,
        start_secs=times.start_secs,
        job_secs=times.job_secs,
        commit_secs=now - times.ran,
        busiest=busiest,
    )
