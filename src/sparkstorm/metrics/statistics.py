"""Statistics: a running topology at one moment."""

from dataclasses import dataclass, field
from typing import final

from sparkstorm.metrics.task_metrics import TaskMetrics
from sparkstorm.metrics.timing import BatchTiming
from sparkstorm.texts.wording import counted

__all__ = ["PartitionStatistics", "Statistics", "skipped_in"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """The progress of one partition of a partitioned source.

    Attributes:
        partition: the partition's name.
        lag: messages between the committed position and the end.
        lag_secs: for how long the first of these messages has been there, as this run has seen.
        seen_secs: the age of these figures: seconds since the source last told its end.
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
        expired: positions the source had lost before the read; earlier runs of a checkpoint count.
        log_cuts: how often the source became shorter.
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
        running_batch: the number of the batch that Spark runs now; None if there is none.
        running_secs: for how long it has been running.
        components: counts by component and task.
        partitions: the progress of each partition of a partitioned spout, by spout.
        timings: where the time of the last batches went, the newest last.
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
    running_batch: int | None = None
    running_secs: float = 0.0
    components: dict[str, dict[int, TaskMetrics]] = field(default_factory=dict)
    partitions: dict[str, tuple[PartitionStatistics, ...]] = field(default_factory=dict)
    timings: tuple[BatchTiming, ...] = ()

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.failures.items())
        parts = [
            f"{counted(self.acked, 'message')} acked",
            f"{counted(self.failed, 'failed attempt')}{reasons and f' ({reasons})'}",
            f"{self.given_up:,} given up",
            f"{self.pending:,} pending",
            "1 batch" if self.batches == 1 else f"{self.batches:,} batches",
        ]
        if self.dead_letters:
            parts.insert(3, counted(self.dead_letters, "dead letter"))
        if self.untracked_failed:
            parts.insert(3, f"{counted(self.untracked_failed, 'untracked tuple')} failed")
        return ", ".join(parts)

    @property
    def untracked_failed(self) -> int:
        """Tuples that failed and belong to no message: no spout hears of them, nobody retries."""
        return sum(
            counts.untracked_failed
            for tasks in self.components.values()
            for counts in tasks.values()
        )

    def component(self, name: str) -> TaskMetrics:
        """Return the counts of a component's tasks together."""
        return sum(self.components.get(name, {}).values(), TaskMetrics())


def skipped_in(partition: str) -> str:
    """Return the counter's name for a partition's positions without a message."""
    return f"skipped in {partition}"
