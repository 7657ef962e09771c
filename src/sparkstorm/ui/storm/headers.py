"""What Storm UI tells of a cluster, of a topology and of its one worker, the driver.

Spark runs all tasks, so a topology counts as one worker, with one executor for each task. Fields of
Storm's resource scheduler are there and zero.
"""

from typing import Any
from urllib.parse import quote_plus

from sparkstorm._version import __version__
from sparkstorm.control.views import SituationView, TopologyView
from sparkstorm.ui.answers import masked_settings

__all__ = [
    "cluster",
    "encoded",
    "nimbus",
    "row",
    "supervisors",
    "tasks_of",
    "topology_head",
    "uptime",
]

STORM_VERSION = "2.8.0"
"""The Storm whose REST interface this is: tools choose paths and fields by its number."""

_RESOURCES = {
    "requestedMemOnHeap": 0.0,
    "requestedMemOffHeap": 0.0,
    "requestedTotalMem": 0.0,
    "requestedCpu": 0.0,
    "requestedGenericResources": "",
    "assignedMemOnHeap": 0.0,
    "assignedMemOffHeap": 0.0,
    "assignedTotalMem": 0.0,
    "assignedCpu": 0.0,
    "assignedGenericResources": "",
}

Running = tuple[TopologyView, SituationView]


def encoded(name: str) -> str:
    """Return a name as Storm encodes it for an address."""
    return quote_plus(name, errors="replace")


def uptime(secs: float) -> str:
    """Return a length of time as Storm writes it.

    >>> uptime(93_784), uptime(59)
    ('1d 2h 3m 4s', '59s')
    """
    left = int(max(0, min(secs, 1e12)))
    parts: list[str] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        number, left = divmod(left, size)
        if number or parts or unit == "s":
            parts.append(f"{number}{unit}")
    return " ".join(parts)


def tasks_of(topology: TopologyView) -> int:
    """Return how many tasks a topology has, ackers among them."""
    return sum(len(part.tasks) for part in topology.components) + topology.ackers


def cluster(running: list[Running]) -> dict[str, Any]:
    """Return ``/cluster/summary``."""
    tasks = sum(tasks_of(topology) for topology, _ in running)
    used = len(running)
    return {
        "stormVersion": STORM_VERSION,
        "sparkstormVersion": __version__,
        "user": None,
        "supervisors": len({topology.host for topology, _ in running}),
        "topologies": used,
        "slotsTotal": used,
        "slotsUsed": used,
        "slotsFree": 0,
        "executorsTotal": tasks,
        "tasksTotal": tasks,
        "totalMem": 0.0,
        "totalCpu": 0.0,
        "availMem": 0.0,
        "availCpu": 0.0,
        "memAssignedPercentUtil": 0.0,
        "cpuAssignedPercentUtil": 0.0,
        "schedulerDisplayResource": False,
    }


def nimbus(host: str, port: int, secs: float) -> dict[str, Any]:
    """Return the page's own process in the place of Nimbus: tools expect a leader."""
    return {
        "host": host,
        "port": port,
        "nimbusLogLink": "",
        "status": "Leader",
        "version": STORM_VERSION,
        "nimbusUpTime": uptime(secs),
        "nimbusUpTimeSeconds": str(int(secs)),
    }


def supervisors(running: list[Running]) -> list[dict[str, Any]]:
    """Return the machines of drivers as Storm's supervisors."""
    found: dict[str, dict[str, Any]] = {}
    for topology, situation in running:
        secs = situation.at - topology.started
        one = found.setdefault(
            topology.host,
            {
                "id": topology.host,
                "host": topology.host,
                "uptime": uptime(secs),
                "uptimeSeconds": int(secs),
                "slotsTotal": 0,
                "slotsUsed": 0,
                "slotsFree": 0,
                "totalMem": 0.0,
                "totalCpu": 0.0,
                "usedMem": 0.0,
                "usedCpu": 0.0,
                "availMem": 0.0,
                "availCpu": 0.0,
                "version": STORM_VERSION,
                "schedulerDisplayResource": False,
                "blacklisted": False,
            },
        )
        one["slotsTotal"] += 1
        one["slotsUsed"] += 1
    return list(found.values())


def row(topology: TopologyView, situation: SituationView) -> dict[str, Any]:
    """Return a topology's row in ``/topology/summary``; the head of its own page has it too."""
    secs = situation.at - topology.started
    tasks = tasks_of(topology)
    return {
        "id": topology.id,
        "encodedId": encoded(topology.id),
        "owner": "",
        "name": topology.name,
        "status": situation.status,
        "uptime": uptime(secs),
        "uptimeSeconds": int(secs),
        "tasksTotal": tasks,
        "workersTotal": 1,
        "executorsTotal": tasks,
        "replicationCount": 1,
        "schedulerInfo": None,
        "topologyVersion": None,
        "stormVersion": STORM_VERSION,
        "sparkstormVersion": topology.version,
        **_RESOURCES,
    }


def topology_head(topology: TopologyView, situation: SituationView) -> dict[str, Any]:
    """Return the parts of ``/topology/{id}`` that are no figures."""
    secs = situation.at - topology.started
    numbers = {part.id: len(part.tasks) for part in topology.components}
    return {
        **row(topology, situation),
        "msgTimeout": topology.message_timeout_secs,
        "debug": False,
        "samplingPct": 100,  # all figures are exact
        "configuration": masked_settings(topology.config),
        "visualizationTable": [],
        "workers": [
            {
                "supervisorId": topology.host,
                "host": topology.host,
                "port": topology.pid,
                "topologyId": topology.id,
                "topologyName": topology.name,
                "executorsTotal": tasks_of(topology),
                "assignedMemOnHeap": 0.0,
                "assignedMemOffHeap": 0.0,
                "assignedCpu": 0.0,
                "componentNumTasks": numbers,
                "uptime": uptime(secs),
                "uptimeSeconds": int(secs),
                "workerLogLink": f"/topologies/{encoded(topology.id)}/logs",
                "owner": "",
            }
        ],
    }
