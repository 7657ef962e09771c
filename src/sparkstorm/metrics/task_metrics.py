"""Task metrics: the counts of one task, by stream."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from sparkstorm.metrics.histogram import Histogram

__all__ = ["InputMetrics", "OutputMetrics", "TaskMetrics", "merge_task_metrics"]

K = TypeVar("K")
V = TypeVar("V", bound=Any)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InputMetrics:
    """Counts of the tuples that a task received on one stream.

    Attributes:
        executed: calls of ``execute``.
        acked: tuples acked in the batch of their ``execute``.
        failed: tuples that failed there.
        execute: seconds inside of ``execute``.
        process: seconds from the begin of ``execute`` to the ack.
    """

    executed: int = 0
    acked: int = 0
    failed: int = 0
    execute: Histogram = field(default_factory=Histogram)
    process: Histogram = field(default_factory=Histogram)

    def __add__(self, other: "InputMetrics") -> "InputMetrics":
        return InputMetrics(
            executed=self.executed + other.executed,
            acked=self.acked + other.acked,
            failed=self.failed + other.failed,
            execute=self.execute + other.execute,
            process=self.process + other.process,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputMetrics:
    """Counts of the tuples that a task emitted to one stream.

    Attributes:
        emitted: emitted tuples.
        transferred: copies of these tuples, one for each receiving task.
    """

    emitted: int = 0
    transferred: int = 0

    def __add__(self, other: "OutputMetrics") -> "OutputMetrics":
        return OutputMetrics(
            emitted=self.emitted + other.emitted,
            transferred=self.transferred + other.transferred,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """Counts of one task, summed over its batches.

    A spout task's ``acked`` and ``failed`` count its messages, an acker's the trees.

    Attributes:
        executed: calls of ``execute``; an acker's contributions.
        emitted: emitted tuples, with those that nobody reads.
        transferred: copies of emitted tuples, one for each receiving task.
        acked: acked tuples.
        failed: failed tuples.
        untracked_failed: the failed tuples among them that belong to no message, so that no spout
            hears of them.
        process_secs: the time spent in the task's user code and its encoding.
        inputs: counts by component and stream of the received tuples.
        outputs: counts by stream of the emitted tuples.
        failures: how many tuples failed for each reason.
        complete: of a spout's messages, the seconds from plan to ack.
        user: the component's own counters.
        observed: the component's own histograms.
    """

    executed: int = 0
    emitted: int = 0
    transferred: int = 0
    acked: int = 0
    failed: int = 0
    untracked_failed: int = 0
    process_secs: float = 0.0
    inputs: Mapping[tuple[str, str], InputMetrics] = field(default_factory=dict)
    outputs: Mapping[str, OutputMetrics] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    complete: Histogram = field(default_factory=Histogram)
    user: tuple[tuple[str, float], ...] = ()
    observed: Mapping[str, Histogram] = field(default_factory=dict)

    def __add__(self, other: "TaskMetrics") -> "TaskMetrics":
        return TaskMetrics(
            executed=self.executed + other.executed,
            emitted=self.emitted + other.emitted,
            transferred=self.transferred + other.transferred,
            acked=self.acked + other.acked,
            failed=self.failed + other.failed,
            untracked_failed=self.untracked_failed + other.untracked_failed,
            process_secs=self.process_secs + other.process_secs,
            inputs=_merged(self.inputs, other.inputs),
            outputs=_merged(self.outputs, other.outputs),
            failures=_merged(self.failures, other.failures),
            complete=self.complete + other.complete,
            user=tuple(sorted(_merged(dict(self.user), dict(other.user)).items())),
            observed=_merged(self.observed, other.observed),
        )

    @property
    def execute(self) -> Histogram:
        """Seconds inside of ``execute``, of all streams."""
        return sum((one.execute for one in self.inputs.values()), Histogram())

    @property
    def process(self) -> Histogram:
        """Seconds from the begin of ``execute`` to the ack, of all streams."""
        return sum((one.process for one in self.inputs.values()), Histogram())

    def totals(self) -> "TaskMetrics":
        """Return the plain counts alone, which take little memory."""
        return TaskMetrics(
            executed=self.executed,
            emitted=self.emitted,
            transferred=self.transferred,
            acked=self.acked,
            failed=self.failed,
            untracked_failed=self.untracked_failed,
            process_secs=self.process_secs,
        )


def merge_task_metrics(
    totals: dict[str, dict[int, TaskMetrics]],
    news: Iterable[tuple[str, int, TaskMetrics]],
) -> None:
    """Add the counts of finished tasks to the totals, in place."""
    for component, task, counts in news:
        tasks = totals.setdefault(component, {})
        tasks[task] = tasks.get(task, TaskMetrics()) + counts


def _merged(left: Mapping[K, V], right: Mapping[K, V]) -> Mapping[K, V]:
    """Add up the values of two mappings by key; the result may be one of the two."""
    if not right:
        return left
    merged = dict(left)
    for key, value in right.items():
        merged[key] = merged[key] + value if key in merged else value
    return merged
