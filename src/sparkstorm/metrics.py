"""What a running topology tells about itself: frozen values that every view reads."""

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

    ``emitted`` counts tuples on streams that somebody reads; the others are never made.
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
    """Where one partition of a partitioned source stands.

    Attributes:
        partition: its name.
        lag: messages between what is committed and the end.
        lag_secs: for how long the first of them has been there, as far as this run has seen.
        seen_secs: the age of these figures: seconds since the source last said where it ends.
        committed: everything before this position is done.
        acked_beyond: how many are done behind it.
        in_flight: how many are in a batch, or open after it.
        in_retry: how many failed and will be tried again.
        oldest: the first position that was given out and is not done; it holds back the commit.
        held_by: the component in which that one failed last; empty if it did not fail yet.
        held_why: and why.
        retries: attempts that failed.
        dead_letters: messages given up.
        kept: records of failed messages that are kept, should the source no longer have them.
        skipped: positions that held no message; what Spark reads twice may be counted twice.
        expired: positions that were gone before they were read.
        log_cuts: how often the source was found shorter than it had been.
        paused: whether too much is uncommitted to read on.
        halted: whether the user has paused it.
    """

    partition: str
    lag: int = 0
    lag_secs: float = 0.0
    seen_secs: float = 0.0
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
    log_cuts: int = 0
    paused: bool = False
    halted: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A topology at one moment; what metrics, the command line and tests read.

    Attributes:
        emitted: messages given to a batch, retries included.
        acked: messages whose tree completed, replayed dead letters among them; of all others the
            spout heard ``ack``.
        failed: attempts that ended in ``fail``, by any reason; those that were rolled back with
            their batch are not among them.
        pending: messages in a batch, open after it, or waiting for a retry.
        retried: attempts after the first.
        rollbacks: how often a whole batch was run again: because of a failure in it, with
            ``processing.guarantee`` exactly-once; or because Spark ran a stage with state twice,
            and not with the same result.
        given_up: messages that will not be tried again, replayed dead letters among them.
        left_failed: messages that failed and that their spout has not emitted again.
        failures: how many attempts failed for each reason.
        dead_letters: those given up that were kept, in the files or by a sink.
        dead_letter_faults: how often a sink raised, so that the files took its letters.
        replayed: dead letters that were emitted again and acked.
        batches: committed batches.
        batch_secs: duration of the last batch.
        batch_messages: messages of the last batch.
        components: counts by component and task.
        partitions: where each partition of a partitioned spout stands, by spout.
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
        """The counts of all tasks of a component together."""
        return sum(self.components.get(name, {}).values(), TaskMetrics())


def skipped_in(partition: str) -> str:
    """The name under which a task counts the positions of a partition that held no message."""
    return f"skipped in {partition}"


def merge_task_metrics(
    totals: dict[str, dict[int, TaskMetrics]],
    news: Iterable[tuple[str, int, TaskMetrics]],
) -> None:
    """Add the counts of finished tasks to the totals, in place."""
    for component, task, counts in news:
        tasks = totals.setdefault(component, {})
        tasks[task] = tasks.get(task, TaskMetrics()) + counts
