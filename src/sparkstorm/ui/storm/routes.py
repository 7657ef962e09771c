"""The paths of Storm UI's REST interface."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from sparkstorm.control.views import (
    ComponentView,
    LineView,
    TopologyView,
    WindowName,
    WindowView,
)
from sparkstorm.errors import ConfigError, SparkstormError
from sparkstorm.ui.answers import Answer, masked_settings
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.pages.actions import wait_secs_of
from sparkstorm.ui.parameters import FAULTS, ORDER_FAULTS, Found, Listed, component_of
from sparkstorm.ui.storm import drawing, figures, headers
from sparkstorm.ui.watch import Watch

__all__ = ["ROUTER"]

ROUTER = APIRouter(prefix="/api/v1", tags=["Storm UI's"], responses=FAULTS)

Json = dict[str, Any]

Row = Callable[[TopologyView, ComponentView, WindowView, float, LineView | None], Json]

_TIMED: tuple[WindowName, ...] = ("600", "10800", "86400")
Window = Annotated[
    str,
    Query(
        description="Seconds, or `:all-time`. The answer is of the shortest window that covers so "
        "many: 600, 10800, 86400 or all time."
    ),
]
Wait = Annotated[str, Path(description="How many seconds pending messages may take.")]


def _running(fleet: Fleet) -> list[headers.Running]:
    found = []
    for watch in fleet.watches().values():
        if not watch.gone:
            try:
                found.append((watch.topology(), watch.situation()))
            except SparkstormError:
                continue  # its driver has just ended, or answers in a way that nobody can read
    return found


def _covering(window: str) -> WindowName:
    """Return the window that an answer is of.

    >>> [_covering(window) for window in ("60", "600", "601", "9999999", ":all-time")]
    ['600', '600', '10800', ':all-time', ':all-time']
    """
    if window == ":all-time":
        return ":all-time"
    secs = wait_secs_of(window)
    return next((one for one in _TIMED if secs <= float(one)), ":all-time")


def _windows(watch: Watch) -> list[WindowView]:
    return [watch.window(name) for name in (*_TIMED, ":all-time")]


@ROUTER.get("/cluster/summary", response_model=Json)
def cluster_summary(fleet: Listed) -> Answer:
    """Return how many topologies and tasks run on this machine."""
    return Answer(headers.cluster(_running(fleet)))


@ROUTER.get("/cluster/configuration", response_model=Json)
def cluster_configuration(fleet: Listed) -> Answer:
    """Return the settings that all running topologies share; there are no others of a cluster."""
    configs = [masked_settings(topology.config) for topology, _ in _running(fleet)]
    first = configs[0] if configs else {}
    shared = {
        name: value
        for name, value in first.items()
        if all(name in one and one[name] == value for one in configs)
    }
    return Answer(shared)


@ROUTER.get("/nimbus/summary", response_model=Json)
def nimbus_summary(request: Request, fleet: Listed) -> Answer:
    """Return the page's own process as the leader; every topology has a driver of its own."""
    here = request.url
    page = headers.nimbus(here.hostname or "", here.port or 80, fleet.age_secs())
    return Answer({"nimbuses": [page]})


@ROUTER.get("/supervisor/summary", response_model=Json)
def supervisor_summary(fleet: Listed) -> Answer:
    """Return the machines of the drivers."""
    return Answer(
        {"supervisors": headers.supervisors(_running(fleet)), "schedulerDisplayResource": False}
    )


@ROUTER.get("/history/summary", response_model=Json)
def history_summary(fleet: Listed) -> Answer:
    """Return the ids of topologies that this page has seen."""
    return Answer({"topo-history": sorted(fleet.watches())})


@ROUTER.get("/topology/summary", response_model=Json)
def topology_summary(fleet: Listed) -> Answer:
    """Return all running topologies."""
    rows = [headers.row(topology, situation) for topology, situation in _running(fleet)]
    return Answer({"topologies": rows, "schedulerDisplayResource": False})


@ROUTER.get("/topology/{topology}", response_model=Json)
def topology_page(watch: Found, window: Window = ":all-time") -> Answer:
    """Return a topology with its spouts and bolts."""
    topology, chosen = watch.topology(), watch.window(_covering(window))
    situation, parts = watch.situation(), topology.components
    errors = {line.component: line for line in watch.lines(level="ERROR")}

    def rows(kind: str, row: Row) -> list[Json]:
        return [
            row(topology, one, chosen, situation.at, errors.get(one.id))
            for one in parts
            if one.kind == kind
        ]

    return Answer(
        {
            **headers.topology_head(topology, situation),
            "window": chosen.window,
            "windowHint": figures.PRETTY[chosen.window],
            "topologyStats": figures.topology_stats(topology, _windows(watch)),
            "spouts": rows("spout", figures.spout_row),
            "bolts": rows("bolt", figures.bolt_row),
        }
    )


@ROUTER.get("/topology-workers/{topology}", response_model=Json)
def topology_workers(watch: Found) -> Answer:
    """Return the driver, as the only host."""
    topology = watch.topology()
    return Answer({"hostPortList": [{"host": topology.host, "port": topology.pid}]})


@ROUTER.get("/topology/{topology}/component/{component:path}", response_model=Json)
def component_page(watch: Found, component: str, window: Window = ":all-time") -> Answer:
    """Return a component with its streams and tasks."""
    part = component_of(watch, component)
    errors = watch.lines(component=part.id, level="ERROR", limit=20)
    return Answer(
        figures.component(
            watch.topology(),
            part,
            watch.situation().status,
            _windows(watch),
            watch.window(_covering(window)),
            errors[::-1],
        )
    )


@ROUTER.get("/topology/{topology}/metrics", response_model=Json)
def topology_metrics(watch: Found, window: Window = ":all-time") -> Answer:
    """Return the counts of all components, by stream."""
    return Answer(figures.metrics(watch.topology(), watch.window(_covering(window))))


@ROUTER.get("/topology/{topology}/lag", response_model=Json)
def topology_lag(watch: Found) -> Answer:
    """Return the committed and last offsets of all partitions."""
    return Answer(drawing.lag(watch.topology(), watch.situation()))


@ROUTER.get("/topology/{topology}/visualization-init", response_model=Json)
def visualization_init(watch: Found) -> Answer:
    """Return the streams of a topology's graph."""
    return Answer(drawing.visualization_streams(watch.topology()))


@ROUTER.get("/topology/{topology}/visualization", response_model=Json)
def visualization(watch: Found, window: Window = ":all-time") -> Answer:
    """Return the graph of a topology, with figures."""
    return Answer(drawing.visualization(watch.topology(), watch.window(_covering(window))))


def _done(watch: Watch, operation: str) -> Answer:
    answer = {"topologyOperation": operation, "topologyId": watch.topology().id}
    return Answer(answer | {"status": "success"})


@ROUTER.post("/topology/{topology}/activate", response_model=Json, responses=ORDER_FAULTS)
def activate(watch: Found) -> Answer:
    """Let spouts give messages again."""
    watch.order(lambda control: control.activate())
    return _done(watch, "activate")


@ROUTER.post("/topology/{topology}/deactivate", response_model=Json, responses=ORDER_FAULTS)
def deactivate(watch: Found) -> Answer:
    """Let spouts rest; pending messages go on."""
    watch.order(lambda control: control.deactivate())
    return _done(watch, "deactivate")


@ROUTER.post("/topology/{topology}/kill/{wait}", response_model=Json, responses=ORDER_FAULTS)
def kill(watch: Found, wait: Wait) -> Answer:
    """End a topology: spouts rest, pending messages may finish for so many seconds."""
    secs = wait_secs_of(wait)
    watch.order(lambda control: control.kill(secs))
    return _done(watch, f"kill/{secs:g}")


@ROUTER.post("/topology/{topology}/rebalance/{wait}", response_model=Json, responses=ORDER_FAULTS)
def rebalance(watch: Found, wait: Wait) -> Answer:
    """Refuse: the numbers of tasks and of Spark's partitions are fixed while a topology runs."""
    raise ConfigError(
        "A running topology cannot be rebalanced. Spark spreads the tasks over its cores anew in "
        "each batch. For other numbers of tasks, kill the topology, change parallelism or "
        "partitions, and start it again on the same checkpoint."
    )
