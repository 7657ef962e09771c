"""The figures of the fake control: metrics, partitions and batches that grow with its clock."""

from sparkstorm.control.views import (
    BatchView,
    ComponentMetricsView,
    InputMetricsView,
    OutputMetricsView,
    PartitionView,
    QuantilesView,
    TaskMetricsView,
    TopologyView,
)
from sparkstorm.testing.control.scene import BOLTS, BoltScene

__all__ = ["BATCH_SECS", "batches_of", "component_metrics", "partitions_of", "quantiles"]

BATCH_SECS = 1.4
"""The time of one batch."""

_NONE = BoltScene(rate=430, execute_secs=0.0)
_ACKER = BoltScene(rate=1600, execute_secs=0.00002)


def quantiles(count: int, secs: float) -> QuantilesView:
    """Return a histogram around a time."""
    if not count:
        return QuantilesView(count=0, mean=None, p50=None, p90=None, p99=None, most=None, total=0)
    return QuantilesView(
        count=count,
        mean=secs,
        p50=secs * 0.8,
        p90=secs * 1.7,
        p99=secs * 4,
        most=secs * 12,
        total=secs * count,
        buckets=[(secs, count // 2), (secs * 4, count * 99 // 100), (secs * 16, count)],
    )


def component_metrics(topology: TopologyView, secs: float) -> list[ComponentMetricsView]:
    """Return the counts of all components, ackers too, after so long."""
    parts = [_metrics_of(topology, part.id, secs) for part in topology.components]
    return [*parts, _counts("__acker", [14, 15], _ACKER, secs, [], [])]


def _metrics_of(topology: TopologyView, name: str, secs: float) -> ComponentMetricsView:
    part = next(part for part in topology.components if part.id == name)
    scene = BOLTS.get(name, _NONE)
    inputs = [(one.component, one.stream) for one in part.inputs]
    return _counts(name, part.tasks, scene, secs, inputs, [one.name for one in part.streams])


def _counts(
    name: str,
    tasks: list[int],
    scene: BoltScene,
    secs: float,
    inputs: list[tuple[str, str]],
    streams: list[str],
) -> ComponentMetricsView:
    bolt = bool(inputs)
    count = int(scene.rate * secs)
    failed = int(count * scene.failing)
    executed = count if bolt or name == "__acker" else 0
    emitted = count if streams else 0
    execute = quantiles(executed, scene.execute_secs)
    return ComponentMetricsView(
        component=name,
        executed=executed,
        emitted=emitted,
        transferred=emitted,
        acked=count - failed,
        failed=failed,
        untracked_failed=0,
        process_secs=executed * scene.execute_secs,
        capacity=scene.rate * scene.execute_secs / len(tasks) if bolt else None,
        failures={"error": failed} if failed else {},
        execute=execute,
        process=quantiles(executed, scene.execute_secs * 1.2),
        complete=quantiles(0 if bolt else count, 0.84),
        inputs=[
            InputMetricsView(
                component=source,
                stream=stream,
                executed=executed // len(inputs),
                acked=(executed - failed) // len(inputs),
                failed=failed // len(inputs),
                execute=execute,
                process=execute,
            )
            for source, stream in inputs
        ],
        outputs=[
            OutputMetricsView(stream=one, emitted=emitted, transferred=emitted) for one in streams
        ],
        tasks=[
            TaskMetricsView(
                task=task,
                executed=executed // len(tasks),
                emitted=emitted // len(tasks),
                transferred=emitted // len(tasks),
                acked=(count - failed) // len(tasks),
                failed=failed // len(tasks),
                process_secs=executed * scene.execute_secs / len(tasks),
            )
            for task in tasks
        ],
        counts={"unknown sku": float(failed)} if failed else {},
        observed={"basket": quantiles(executed, 3.2)} if name == "parse" else {},
    )


def batches_of(secs: float, now: float) -> list[BatchView]:
    """Return the last batches, the newest last."""
    last = int(secs / BATCH_SECS)
    return [
        BatchView(
            number=number,
            messages=570 + (number * 37) % 60,
            at=now - (last - number) * BATCH_SECS,
            start_secs=0.08 + (number % 5) * 0.01,
            job_secs=1.1 + (number % 7) * 0.05,
            commit_secs=0.12,
            busiest={"parse": 0.24, "enrich": 0.9, "score": 0.4, "total": 0.3, "__acker": 0.03},
        )
        for number in range(max(0, last - 40), last)
    ]


def partitions_of(committed: int) -> list[PartitionView]:
    """Return a stuck partition, one that moves, a paused one, one at its end, one held by hand."""

    def partition(name: str, **facts: object) -> PartitionView:
        plain: dict[str, object] = {
            "spout": "orders",
            "partition": name,
            "lag": 0,
            "lag_secs": 0.0,
            "seen_secs": 0.4,
            "committed": committed,
            "acked_beyond": 0,
            "in_flight": 0,
            "in_retry": 0,
            "oldest": None,
            "held_by": "",
            "held_why": "",
            "retries": 0,
            "dead_letters": 0,
            "skipped": 0,
            "expired": 0,
            "log_cuts": 0,
            "paused": False,
            "halted": False,
        }
        return PartitionView(**{**plain, **facts})  # type: ignore[arg-type]

    stuck = {
        "oldest": 18_204,
        "held_by": "enrich",
        "held_why": "KeyError: 'sku-8812'",
        "in_retry": 1,
        "retries": 6,
    }
    return [
        partition(
            "orders-0", lag=5210, lag_secs=412, committed=18_204, acked_beyond=4890, in_flight=212,
            **stuck,
        ),
        partition("orders-1", lag=310, lag_secs=1.2, in_flight=300, oldest=committed),
        partition(
            "orders-2", lag=99_000, lag_secs=900, committed=18_204, acked_beyond=9_000, paused=True,
            **stuck,
        ),
        partition("orders-3"),
        partition("orders-4", lag=12, lag_secs=60, halted=True),
    ]  # fmt: skip
