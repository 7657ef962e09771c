"""Metrics: a running topology's numbers, as frozen values read by every view."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

__all__ = [
    "PartitionStatistics",
    "Statistics",
    "TaskMetrics",
    "merge_task_metrics",
    "skipped_in",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """Counts of one task, summed over its batches.

    ``emitted`` counts tuples on streams with readers; the engine never makes the others.
    ``process_secs`` is the time spent in the task's user code and its encoding.
    """

    executed: int = 0
    emitted: int = 0
    acked: int = 0
    failed: int = 0
    process_secs: float = 0.0
    user: tuple[tuple[str, float], ...] = ()

    def __add__(self, other: "TaskMetrics") -> "TaskMetrics":
        user = dict(self.user)
        for name, value in other.user:
            user[name] = user.get(name, 0.0) + value
        return TaskMetrics(
            executed=self.executed + other.executed,
            emitted=self.emitted + other.emitted,
            acked=self.acked + other.acked,
            failed=self.failed + other.failed,
            process_secs=self.process_secs + other.process_secs,
            user=tuple(sorted(user.items())),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """The progress of one partition of a partitioned source.

    Attributes:
        partition: the partition's name.
        lag: messages between the committed position and the end.
        committed: all messages before this position are done.
        acked_beyond: how many messages behind the committed position are done.
        in_flight: how many messages are in a batch, or open after it.
        in_retry: how many messages failed and will be tried again.
        oldest: the first position given out and not done; it holds back the commit.
        held_by: the component in which the oldest message failed last; empty before its first
            failure.
        held_why: why the oldest message failed last.
        retries: attempts that failed.
        dead_letters: messages given up.
        kept: stored records of failed messages, in case the source loses them.
        skipped: positions without a message; positions read twice by Spark may count twice.
        expired: positions the source had lost before the read.
        paused: whether too much is uncommitted to read on.
    """

    partition: str
    lag: int = 0
    committed: int = 0
    acked_beyond: int = 0
    in_flight: int = 0
    in_retry: int = 0
    oldest: int | None = None
    held_by: str = ""
    held_why: str = ""
    retries: int = 0
    dead_letters: int = 0
    kept: int = 0
    skipped: int = 0
    expired: int = 0
    paused: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A topology at one moment, for metrics, the command line and tests.

    Attributes:
        emitted: messages given to a batch, including retries.
        acked: messages with completed trees, including replayed dead letters; for all others the
            spout was told ``ack``.
        failed: attempts that ended in ``fail``, for any reason; attempts rolled back with their
            batch do not count.
        pending: messages in a batch, open after it, or waiting for a retry.
        retried: attempts after the first.
        rollbacks: how often a whole batch ran again: because of a failure in it, with
            ``processing.guarantee`` exactly-once; or because Spark ran a stage with state twice,
            with different results.
        given_up: messages that will not be tried again, including replayed dead letters.
        left_failed: failed messages that their spout has not emitted again.
        failures: how many attempts failed for each reason.
        dead_letters: given-up messages that were kept, in the files or by a sink.
        dead_letter_faults: how often a sink raised, so the files took its letters.
        replayed: dead letters emitted again and acked.
        batches: committed batches.
        batch_secs: duration of the last batch.
        batch_messages: messages of the last batch.
        components: counts by component and task.
        partitions: the progress of each partition of a partitioned spout, by spout.
    """

    emitted: int = 0
    acked: int = 0
    failed: int = 0
    pending: int = 0
    retried: int = 0
    rollbacks: int = 0
    given_up: int = 0
    left_failed: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    dead_letter_faults: int = 0
    replayed: int = 0
    batches: int = 0
    batch_secs: float = 0.0
    batch_messages: int = 0
    components: dict[str, dict[int, TaskMetrics]] = field(default_factory=dict)
    partitions: dict[str, tuple[PartitionStatistics, ...]] = field(default_factory=dict)

    def component(self, name: str) -> TaskMetrics:
        """Return the counts of a component's tasks together."""
        return sum(self.components.get(name, {}).values(), TaskMetrics())


def skipped_in(partition: str) -> str:
    """Return the counter's name for a partition's positions without a message."""
    return f"skipped in {partition}"


def merge_task_metrics(
    totals: dict[str, dict[int, TaskMetrics]],
    news: Iterable[tuple[str, int, TaskMetrics]],
) -> None:
    """Add the counts of finished tasks to the totals, in place."""
    for component, task, counts in news:
        tasks = totals.setdefault(component, {})
        tasks[task] = tasks.get(task, TaskMetrics()) + counts
