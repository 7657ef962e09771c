"""Describing: the engine's plan, statistics and metrics as views."""

from collections.abc import Mapping
from typing import Any

from sparkstorm._version import __version__
from sparkstorm.control.registry import Entry
from sparkstorm.control.views import (
    BatchView,
    ComponentMetricsView,
    ComponentView,
    InputMetricsView,
    InputView,
    OutputMetricsView,
    PartitionView,
    QuantilesView,
    StreamView,
    TaskMetricsView,
    TopologyView,
    WindowName,
    WindowView,
)
from sparkstorm.metrics import BatchTiming, Histogram, PartitionStatistics, TaskMetrics, Window
from sparkstorm.planning.plan import ACKER, Plan
from sparkstorm.texts.credentials import MASK, Secret, hidden
from sparkstorm.topology.graph import ComponentSpec
from sparkstorm.topology.grouping import FieldsGrouping, PartialKey, describe

__all__ = ["batch_view", "partition_view", "topology_view", "window_view"]

_BOUNDS = [0.0001 * 4**n for n in range(12)]
"""Upper ends of the buckets that are told, in seconds: from 0.1 ms to 7 minutes."""


def topology_view(plan: Plan, entry: Entry) -> TopologyView:
    """Return a topology as it was submitted."""
    config = plan.config
    ordered = [*plan.topology.spouts, *plan.topology.bolts]
    return TopologyView(
        id=entry.id,
        name=plan.name,
        version=__version__,
        pid=entry.holder.pid,
        host=entry.holder.host,
        started=entry.holder.since,
        master=entry.master,
        checkpoint=entry.checkpoint,
        target="" if entry.origin is None else str(entry.origin.get("target", "")),
        guarantee=config.processing_guarantee,
        partitions=plan.partitions,
        ackers=len(plan.ackers),
        message_timeout_secs=config.message_timeout_secs
        if config.enable_message_timeouts
        else None,
        components=[_component(plan, spec) for spec in ordered],
        config=_settings(config.model_dump(by_alias=True)),
    )


def partition_view(spout: str, one: PartitionStatistics) -> PartitionView:
    """Return how a partition stands."""
    return PartitionView(
        spout=spout,
        **{name: getattr(one, name) for name in PartitionView.__slots__ if name != "spout"},
    )


def batch_view(timing: BatchTiming) -> BatchView:
    """Return where the time of a batch went."""
    return BatchView(
        number=timing.number,
        messages=timing.messages,
        at=timing.at,
        start_secs=timing.start_secs,
        job_secs=timing.job_secs,
        commit_secs=timing.commit_secs,
        plan_secs=timing.plan_secs,
        busiest=dict(timing.busiest),
    )


def window_view(plan: Plan, window: Window, name: WindowName, secs: float) -> WindowView:
    """Return the metrics of a window.

    Args:
        plan: the topology's plan.
        window: the metrics.
        name: the window's name.
        secs: how long the window is: its length, or the time since the start if that is less.
    """
    names = [spec.id for spec in (*plan.topology.spouts, *plan.topology.bolts)]
    return WindowView(
        window=name,
        secs=secs,
        components=[_metrics(plan, window, one, secs) for one in (*names, ACKER)],
    )


def _component(plan: Plan, spec: ComponentSpec) -> ComponentView:
    return ComponentView(
        id=spec.id,
        kind="spout" if spec.is_spout else "bolt",
        class_name=type(spec.component).__qualname__,
        tasks=list(plan.tasks[spec.id]),
        stateful=spec.is_stateful,
        streams=[
            StreamView(name=name, fields=list(stream.names), direct=stream.direct)
            for name, stream in spec.streams.items()
        ],
        inputs=[
            InputView(
                component=edge.source,
                stream=edge.stream,
                grouping=describe(edge.grouping),
                fields=_fields_of(edge.grouping),
            )
            for edge in spec.subscriptions
        ],
        settings=_settings(spec.settings),
    )


def _fields_of(grouping: Any) -> list[str]:
    return list(grouping.fields) if isinstance(grouping, FieldsGrouping | PartialKey) else []


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON's types, secrets masked."""
    masked: dict[str, Any] = hidden(dict(settings))
    return {name: _plain(value) for name, value in masked.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):  # a str, whose value JSON would tell
        return MASK
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value)


def _metrics(plan: Plan, window: Window, name: str, secs: float) -> ComponentMetricsView:
    counts = window.components.get(name, TaskMetrics())
    tasks = {task: window.tasks.get((name, task), TaskMetrics()) for task in plan.tasks[name]}
    busiest = max((one.process_secs for one in tasks.values()), default=0.0)
    is_spout = name != ACKER and plan.spec(name).is_spout
    return ComponentMetricsView(
        component=name,
        executed=counts.executed,
        emitted=counts.emitted,
        transferred=counts.transferred,
        acked=counts.acked,
        failed=counts.failed,
        untracked_failed=counts.untracked_failed,
        process_secs=counts.process_secs,
        capacity=None if is_spout or not secs else busiest / secs,
        failures=dict(counts.failures),
        execute=_quantiles(counts.execute),
        process=_quantiles(counts.process),
        complete=_quantiles(counts.complete),
        inputs=[
            InputMetricsView(
                component=component,
                stream=stream,
                executed=one.executed,
                acked=one.acked,
                failed=one.failed,
                execute=_quantiles(one.execute),
                process=_quantiles(one.process),
            )
            for (component, stream), one in sorted(counts.inputs.items())
        ],
        outputs=[
            OutputMetricsView(stream=stream, emitted=one.emitted, transferred=one.transferred)
            for stream, one in sorted(counts.outputs.items())
        ],
        tasks=[_task(task, one) for task, one in tasks.items()],
        counts=dict(counts.user),
        observed={key: _quantiles(one) for key, one in counts.observed.items()},
    )


def _task(task: int, counts: TaskMetrics) -> TaskMetricsView:
    return TaskMetricsView(
        task=task,
        executed=counts.executed,
        emitted=counts.emitted,
        transferred=counts.transferred,
        acked=counts.acked,
        failed=counts.failed,
        process_secs=counts.process_secs,
    )


def _quantiles(histogram: Histogram) -> QuantilesView:
    is_empty = not histogram.buckets
    return QuantilesView(
        count=histogram.count,
        mean=None if is_empty else histogram.mean,
        p50=None if is_empty else histogram.quantile(0.5),
        p90=None if is_empty else histogram.quantile(0.9),
        p99=None if is_empty else histogram.quantile(0.99),
        most=None if is_empty else histogram.quantile(1.0),
        total=histogram.total,
        buckets=[] if is_empty else [*zip(_BOUNDS, histogram.up_to(_BOUNDS), strict=True)],
    )
