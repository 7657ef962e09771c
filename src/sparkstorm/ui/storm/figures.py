"""Figures under Storm's names: counts, and latencies as milliseconds in a text."""

from collections.abc import Iterable
from typing import Any

from sparkstorm.control.views import (
    ComponentMetricsView,
    ComponentView,
    LineView,
    QuantilesView,
    TopologyView,
    WindowView,
)
from sparkstorm.ui.storm.headers import encoded, uptime

__all__ = ["bolt_row", "component", "metrics", "spout_row", "topology_stats"]

PRETTY = {
    "600": "10m 0s",
    "10800": "3h 0m 0s",
    "86400": "1d 0h 0m 0s",
    ":all-time": "All time",
}
"""The windows, as Storm writes them."""

_NO_REQUEST = {
    "requestedMemOnHeap": 0.0,
    "requestedMemOffHeap": 0.0,
    "requestedCpu": 0.0,
    "requestedGenericResourcesComp": "",
}


def millis(found: QuantilesView) -> str:
    """Return a mean in milliseconds, as Storm writes it."""
    return f"{1000 * found.mean:.3f}" if found.mean is not None else "0.000"


def _mean(parts: Iterable[QuantilesView]) -> str:
    """Return the mean of several histograms together."""
    counted = [(one.count, one.mean) for one in parts if one.mean is not None]
    total = sum(count for count, _ in counted)
    mean = sum(count * mean for count, mean in counted) / total if total else 0.0
    return f"{1000 * mean:.3f}"


def _named(window: WindowView) -> dict[str, ComponentMetricsView]:
    return {one.component: one for one in window.components}


def topology_stats(topology: TopologyView, windows: Iterable[WindowView]) -> list[dict[str, Any]]:
    """Return ``topologyStats``: all emits, and the messages of all spouts."""
    spouts = {part.id for part in topology.components if part.kind == "spout"}
    rows = []
    for window in windows:
        mine = [one for one in window.components if one.component in spouts]
        parts = [one for one in window.components if one.component != "__acker"]
        rows.append(
            {
                "windowPretty": PRETTY[window.window],
                "window": window.window,
                "emitted": sum(one.emitted for one in parts),
                "transferred": sum(one.transferred for one in parts),
                "completeLatency": _mean(one.complete for one in mine),
                "acked": sum(one.acked for one in mine),
                "failed": sum(one.failed for one in mine),
            }
        )
    return rows


def _sums(one: ComponentMetricsView | None) -> dict[str, int]:
    names = ("emitted", "transferred", "acked", "failed")
    return {name: getattr(one, name) if one else 0 for name in names}


def _bolt_figures(one: ComponentMetricsView | None) -> dict[str, Any]:
    return {
        **_sums(one),
        "capacity": f"{one.capacity or 0:.3f}" if one else "0.000",
        "executeLatency": millis(one.execute) if one else "0.000",
        "executed": one.executed if one else 0,
        "processLatency": millis(one.process) if one else "0.000",
    }


def _spout_figures(one: ComponentMetricsView | None) -> dict[str, Any]:
    return {**_sums(one), "completeLatency": millis(one.complete) if one else "0.000"}


def spout_row(
    topology: TopologyView,
    part: ComponentView,
    window: WindowView,
    now: float,
    error: LineView | None,
) -> dict[str, Any]:
    """Return a spout's row in ``/topology/{id}``."""
    return {
        "spoutId": part.id,
        "encodedSpoutId": encoded(part.id),
        "executors": len(part.tasks),
        "tasks": len(part.tasks),
        **_spout_figures(_named(window).get(part.id)),
        **_last_error(topology, now, error),
        **_NO_REQUEST,
    }


def bolt_row(
    topology: TopologyView,
    part: ComponentView,
    window: WindowView,
    now: float,
    error: LineView | None,
) -> dict[str, Any]:
    """Return a bolt's row in ``/topology/{id}``."""
    return {
        "boltId": part.id,
        "encodedBoltId": encoded(part.id),
        "executors": len(part.tasks),
        "tasks": len(part.tasks),
        **_bolt_figures(_named(window).get(part.id)),
        **_last_error(topology, now, error),
        **_NO_REQUEST,
    }


def _last_error(topology: TopologyView, now: float, line: LineView | None) -> dict[str, Any]:
    """Return the last line that a component logged as an error."""
    return {
        "lastError": line.text if line else "",
        "errorHost": topology.host if line else "",
        "errorPort": topology.pid if line else "",
        "errorTime": int(line.at) if line else None,
        "errorLapsedSecs": max(0, int(now - line.at)) if line else None,
        "errorWorkerLogLink": f"/topologies/{encoded(topology.id)}/logs" if line else "",
    }


def component(
    topology: TopologyView,
    part: ComponentView,
    status: str,
    windows: list[WindowView],
    chosen: WindowView,
    errors: list[LineView],
) -> dict[str, Any]:
    """Return ``/topology/{id}/component/{component}``."""
    one = _named(chosen).get(part.id)
    spout = part.kind == "spout"
    figures = _spout_figures if spout else _bolt_figures
    answer = {
        "user": None,
        "id": part.id,
        "encodedId": encoded(part.id),
        "name": topology.name,
        "executors": len(part.tasks),
        "tasks": len(part.tasks),
        "componentType": part.kind,
        "topologyId": topology.id,
        "encodedTopologyId": encoded(topology.id),
        "topologyStatus": status,
        "window": chosen.window,
        "windowHint": PRETTY[chosen.window],
        "debug": False,
        "samplingPct": 100,
        "eventLogLink": "",
        "profilingAndDebuggingCapable": False,
        "profileActionEnabled": False,
        "profilerActive": [],
        "componentErrors": [_error(topology, line) for line in errors],
        ("spoutSummary" if spout else "boltStats"): [
            {
                "window": window.window,
                "windowPretty": PRETTY[window.window],
                **figures(_named(window).get(part.id)),
            }
            for window in windows
        ],
        "outputStats": _outputs(one, spout=spout),
        "executorStats": _executors(topology, part, one, chosen.secs),
    }
    if not spout:
        answer["inputStats"] = _inputs(one)
    return answer


def _error(topology: TopologyView, line: LineView) -> dict[str, Any]:
    return {
        "errorTime": int(line.at),
        "errorHost": topology.host,
        "errorPort": topology.pid,
        "errorWorkerLogLink": f"/topologies/{encoded(topology.id)}/logs",
        "errorLapsedSecs": None,
        "error": f"{line.text}\n{line.trace}".strip(),
    }


def _outputs(one: ComponentMetricsView | None, *, spout: bool) -> list[dict[str, Any]]:
    rows = []
    for out in one.outputs if one else ():
        row: dict[str, Any] = {
            "stream": out.stream,
            "emitted": out.emitted,
            "transferred": out.transferred,
        }
        if spout and one:  # verdicts are counted per spout: a message belongs to one stream
            row |= {
                "completeLatency": millis(one.complete),
                "acked": one.acked,
                "failed": one.failed,
            }
        rows.append(row)
    return rows


def _inputs(one: ComponentMetricsView | None) -> list[dict[str, Any]]:
    return [
        {
            "component": got.component,
            "encodedComponentId": encoded(got.component),
            "stream": got.stream,
            "executeLatency": millis(got.execute),
            "processLatency": millis(got.process),
            "executed": got.executed,
            "acked": got.acked,
            "failed": got.failed,
        }
        for got in (one.inputs if one else ())
    ]


def _executors(
    topology: TopologyView, part: ComponentView, one: ComponentMetricsView | None, secs: float
) -> list[dict[str, Any]]:
    rows = []
    for task in one.tasks if one else ():
        row: dict[str, Any] = {
            "id": f"[{task.task}-{task.task}]",
            "encodedId": encoded(f"[{task.task}-{task.task}]"),
            "uptime": uptime(secs),
            "uptimeSeconds": int(secs),
            "host": topology.host,
            "port": topology.pid,
            "emitted": task.emitted,
            "transferred": task.transferred,
            "acked": task.acked,
            "failed": task.failed,
            "workerLogLink": f"/topologies/{encoded(topology.id)}/logs",
        }
        if part.kind == "bolt":
            mean = task.process_secs / task.executed if task.executed else 0.0
            row |= {
                "capacity": f"{task.process_secs / secs if secs > 0 else 0.0:.3f}",
                "executed": task.executed,
                "executeLatency": f"{1000 * mean:.3f}",
                "processLatency": f"{1000 * mean:.3f}",
            }
        else:
            row["completeLatency"] = millis(one.complete) if one else "0.000"
        rows.append(row)
    return rows


def metrics(topology: TopologyView, window: WindowView) -> dict[str, Any]:
    """Return ``/topology/{id}/metrics``: counts by stream."""
    named = _named(window)
    pairs = [(part, named[part.id]) for part in topology.components if part.id in named]
    return {
        "window": window.window,
        "window-hint": PRETTY[window.window],
        "spouts": [_spout_metrics(one) for part, one in pairs if part.kind == "spout"],
        "bolts": [_bolt_metrics(one) for part, one in pairs if part.kind == "bolt"],
    }


def _by_output(one: ComponentMetricsView, name: str) -> list[dict[str, Any]]:
    return [{"stream_id": out.stream, "value": getattr(out, name)} for out in one.outputs]


def _by_input(one: ComponentMetricsView, name: str) -> list[dict[str, Any]]:
    return [
        {"component_id": got.component, "stream_id": got.stream, "value": getattr(got, name)}
        for got in one.inputs
    ]


def _spout_metrics(one: ComponentMetricsView) -> dict[str, Any]:
    stream = one.outputs[0].stream if one.outputs else "default"
    return {
        "id": one.component,
        "emitted": _by_output(one, "emitted"),
        "transferred": _by_output(one, "transferred"),
        "acked": [{"stream_id": stream, "value": one.acked}],
        "failed": [{"stream_id": stream, "value": one.failed}],
        "complete_ms_avg": [{"stream_id": stream, "value": millis(one.complete)}],
    }


def _bolt_metrics(one: ComponentMetricsView) -> dict[str, Any]:
    def averages(name: str) -> list[dict[str, Any]]:
        return [
            {
                "component_id": got.component,
                "stream_id": got.stream,
                "value": millis(getattr(got, name)),
            }
            for got in one.inputs
        ]

    return {
        "id": one.component,
        "emitted": _by_output(one, "emitted"),
        "transferred": _by_output(one, "transferred"),
        "acked": _by_input(one, "acked"),
        "failed": _by_input(one, "failed"),
        "executed": _by_input(one, "executed"),
        "process_ms_avg": averages("process"),
        "executed_ms_avg": averages("execute"),
    }
