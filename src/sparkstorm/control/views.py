"""Views: what a driver tells other processes about its topology; frozen values of JSON's types.

Times are seconds since 1970, lengths of time are seconds. Foreign text (values, ids, exceptions) is
as it came: whoever shows a view has to make the text safe.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, final

__all__ = [
    "AttemptView",
    "BatchView",
    "ComponentMetricsView",
    "ComponentView",
    "GroupView",
    "InputMetricsView",
    "InputView",
    "LetterView",
    "LettersView",
    "LineView",
    "MessageDetailView",
    "MessageView",
    "MessagesView",
    "NodeView",
    "OutputMetricsView",
    "PartitionView",
    "QuantilesView",
    "ReplayView",
    "SituationView",
    "StreamView",
    "TaskMetricsView",
    "TopologyView",
    "TreeView",
    "WindowName",
    "WindowView",
]

WindowName = Literal["600", "10800", "86400", ":all-time"]
"""Storm's windows, as its REST interface names them."""

MessageState = Literal["waiting", "running", "open", "retry"]
"""``waiting`` for a batch; ``running`` in a batch; ``open`` after the batch, since a bolt holds a
tuple; ``retry``: waiting for the next try."""

NodeState = Literal["emitted", "executed", "acked", "failed", "open"]


# --- the topology, which never changes while it runs ---------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """A declared stream."""

    name: str
    fields: list[str]
    direct: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InputView:
    """A subscription of a bolt."""

    component: str
    stream: str
    grouping: str
    fields: list[str] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentView:
    """A spout or bolt.

    Attributes:
        id: the component's name.
        kind: ``spout`` or ``bolt``.
        class_name: the class of the component.
        tasks: the task numbers.
        stateful: whether the tasks keep state.
        streams: the declared streams.
        inputs: the subscriptions.
        settings: the component's own settings, as people write them.
    """

    id: str
    kind: Literal["spout", "bolt"]
    class_name: str
    tasks: list[int]
    stateful: bool = False
    streams: list[StreamView] = field(default_factory=list)
    inputs: list[InputView] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyView:
    """A running topology, as it was submitted.

    Attributes:
        id: names this run: the topology's name, and the run's own part.
        name: the topology's name.
        version: the version of sparkstorm.
        pid: the driver's process.
        host: the driver's machine.
        started: when the run began.
        master: where Spark runs.
        checkpoint: the checkpoint's place; empty for a temporary one.
        target: the topology's file or module; empty if a program has made it.
        guarantee: ``at-least-once`` or ``exactly-once``.
        partitions: the partitions of the Spark jobs.
        ackers: how many ackers there are; 0 if nothing is tracked.
        message_timeout_secs: how long a tree may stay open; None for ever.
        components: spouts and bolts, spouts first.
        config: all settings by Storm's keys, secrets masked.
    """

    id: str
    name: str
    version: str
    pid: int
    host: str
    started: float
    master: str
    checkpoint: str
    guarantee: str
    partitions: int
    ackers: int
    message_timeout_secs: float | None
    components: list[ComponentView]
    config: dict[str, Any]
    target: str = ""


# --- how it stands -------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition of a partitioned spout; see :class:`sparkstorm.metrics.PartitionStatistics`."""

    spout: str
    partition: str
    lag: int
    lag_secs: float
    seen_secs: float
    committed: int
    acked_beyond: int
    in_flight: int
    in_retry: int
    oldest: int | None
    held_by: str
    held_why: str
    retries: int
    dead_letters: int
    skipped: int
    expired: int
    log_cuts: int
    paused: bool
    halted: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """Where the time of a committed batch went; see :class:`sparkstorm.metrics.BatchTiming`."""

    number: int
    messages: int
    at: float
    start_secs: float
    job_secs: float
    commit_secs: float
    busiest: dict[str, float]
    plan_secs: float = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SituationView:
    """A topology at one moment; most counts are those of :class:`sparkstorm.metrics.Statistics`.

    Attributes:
        at: the moment.
        status: Storm's words: ``ACTIVE``, ``INACTIVE`` (spouts rest), ``KILLED`` (the run ends).
        emitted: messages given to a batch, with retries.
        acked: messages whose trees are complete.
        failed: attempts that failed.
        pending: messages in a batch, open after it, or waiting for a retry.
        waiting: failed messages that wait for their next attempt; those of a hosted spout are
            with the spout, and not pending.
        retried: attempts after the first.
        given_up: messages without a further try.
        failures: failed attempts by reason.
        dead_letters: given-up messages, kept on disk.
        untracked_failed: failed tuples of no message.
        rollbacks: how often a whole batch ran again.
        batches: committed batches.
        batch_secs: the time of the last batch.
        batch_messages: the messages of the last batch.
        running_batch: the number of the running batch.
        running_secs: for how long the batch has been running.
        polled_secs: for how long no spout was asked for messages.
        committed_secs: for how long no batch was committed.
        spouts: for how long each spout was not called; a spout in a long call is not called.
        partitions: the partitions of all partitioned spouts.
        batch_times: the last batches, the newest last.
    """

    at: float
    status: Literal["ACTIVE", "INACTIVE", "KILLED"]
    emitted: int
    acked: int
    failed: int
    pending: int
    waiting: int
    retried: int
    given_up: int
    failures: dict[str, int]
    dead_letters: int
    untracked_failed: int
    rollbacks: int
    batches: int
    batch_secs: float
    batch_messages: int
    running_batch: int | None
    running_secs: float
    polled_secs: float
    committed_secs: float
    partitions: list[PartitionView]
    batch_times: list[BatchView]
    spouts: dict[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesView:
    """A histogram in short; None where nobody has measured.

    Attributes:
        buckets: upper ends with the counts up to there, as in Prometheus.
    """

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None
    total: float
    buckets: list[tuple[float, int]] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InputMetricsView:
    """Counts of the tuples that a component received on one stream."""

    component: str
    stream: str
    executed: int
    acked: int
    failed: int
    execute: QuantilesView
    process: QuantilesView


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputMetricsView:
    """Counts of the tuples that a component emitted to one stream."""

    stream: str
    emitted: int
    transferred: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetricsView:
    """The plain counts of one task."""

    task: int
    executed: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    process_secs: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentMetricsView:
    """Counts of a component, in a window.

    Attributes:
        capacity: the share of the time in which the busiest task was busy; None for spouts.
        counts: the component's own counters.
        observed: the component's own histograms.
    """

    component: str
    executed: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    untracked_failed: int
    process_secs: float
    capacity: float | None
    failures: dict[str, int]
    execute: QuantilesView
    process: QuantilesView
    complete: QuantilesView
    inputs: list[InputMetricsView]
    outputs: list[OutputMetricsView]
    tasks: list[TaskMetricsView]
    counts: dict[str, float]
    observed: dict[str, QuantilesView]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowView:
    """The metrics of a window: of spouts, bolts, and ackers under ``__acker``."""

    window: WindowName
    secs: float
    components: list[ComponentMetricsView]


# --- messages ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """An unfinished message.

    Attributes:
        id: names the message to the driver, over its attempts.
        spout: the spout that emitted the message.
        task: the spout's task.
        name: the spout's own name: the ``msg_id``, or the partition and position.
        state: where the message is.
        attempt: the attempt's number; while the message waits, the next attempt's.
        age_secs: since the first attempt began.
        due_secs: until the next attempt, while the message waits.
        held_by: components with an open tuple; or where the last attempt failed.
        reason: why the last attempt failed; empty before the first failure.
        why: the failure's text.
    """

    id: str
    spout: str
    task: int
    name: str
    state: MessageState
    attempt: int
    age_secs: float
    due_secs: float | None = None
    held_by: list[str] = field(default_factory=list)
    reason: str = ""
    why: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesView:
    """Unfinished messages, the oldest first; ``total`` also counts messages beyond the limit."""

    total: int
    messages: list[MessageView]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """A line that a component printed or logged.

    Attributes:
        at: when the driver heard of the line.
        component: the component.
        task: the component's task.
        level: the name of a level of Python's logging, or ``print``.
        text: the line.
        trace: the traceback logged with the line.
        message: the id of the message whose tuple was being executed; empty without a message.
        name: the message's name.
        attempt: the number of the attempt.
    """

    at: float
    component: str
    task: int
    level: str
    text: str
    trace: str = ""
    message: str = ""
    name: str = ""
    attempt: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A tuple of a tree.

    Attributes:
        id: names the tuple within the tree.
        parents: the ids of the anchors.
        source: the emitting component.
        source_task: the emitting task.
        stream: the stream.
        component: the receiving component; empty before ``execute``.
        task: the receiving task.
        values: values by field, as short text.
        at: when ``execute`` began; None before.
        secs: the time inside of ``execute``.
        state: ``open`` after ``execute`` without ack or fail.
        reason: why the tuple failed.
        why: the failure's text.
        frame: the last frame in the user's own files, ``FILE:LINE in FUNCTION``.
        trace: the whole traceback.
    """

    id: str
    parents: list[str]
    source: str
    source_task: int
    stream: str
    component: str = ""
    task: int | None = None
    values: dict[str, str] = field(default_factory=dict)
    at: float | None = None
    secs: float | None = None
    state: NodeState = "emitted"
    reason: str = ""
    why: str = ""
    frame: str = ""
    trace: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeView:
    """The known tuples of an attempt; ``cut`` counts tuples left out."""

    nodes: list[NodeView]
    cut: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt at a message.

    Attributes:
        number: counts from 1.
        batch: the batch's number.
        began: when the batch was planned.
        ended: when the verdict was given; None before.
        outcome: ``running``, ``acked``, or the reason of the failure.
        component: where the attempt failed.
        task: the task that failed.
        why: the failure's text.
        frame: the last frame in the user's own files.
        trace: the whole traceback.
        tree: the tuples; None if the attempt was not traced.
        lines: lines that components logged meanwhile.
    """

    number: int
    batch: int
    began: float
    ended: float | None
    outcome: str
    component: str = ""
    task: int | None = None
    why: str = ""
    frame: str = ""
    trace: str = ""
    tree: TreeView | None = None
    lines: list[LineView] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDetailView:
    """One message, whether unfinished or kept after its end, with its attempts side by side."""

    id: str
    spout: str
    task: int
    name: str
    state: Literal["waiting", "running", "open", "retry", "acked", "given up"]
    attempts: list[AttemptView]
    letter: str = ""


# --- dead letters --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LetterView:
    """A dead letter; ``values`` are JSON with tags for other types, as the letter's file has them.

    Attributes:
        group: the same for letters that failed alike.
    """

    id: str
    group: str
    spout: str
    name: str
    stream: str
    values: dict[str, Any] | None
    reason: str
    component: str
    task: int
    why: str
    frame: str
    trace: str
    attempts: int
    first_time: float
    last_time: float
    replays: int
    replayable: bool
    note: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Letters that failed alike: by component, reason, kind of exception and last user's frame."""

    group: str
    component: str
    reason: str
    kind: str
    frame: str
    count: int
    example: LetterView


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LettersView:
    """Dead letters, the newest first; ``total`` also counts letters beyond the limit."""

    total: int
    letters: list[LetterView]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayView:
    """A request to replay dead letters.

    Attributes:
        name: the request's name.
        asked: how many letters.
        acked: how many are done, and removed.
        gone: how many were discarded, or acked by another request, before they were done.
        pending: how many are on their way, or still to be emitted.
        left: refused letters, each with the reason.
    """

    name: str
    asked: int
    acked: int
    pending: int
    left: dict[str, str] = field(default_factory=dict)
    gone: int = 0
