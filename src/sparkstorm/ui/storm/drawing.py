"""The graph and the lag of a topology, as Storm UI's page asks for them."""

from typing import Any

from sparkstorm.control.views import SituationView, TopologyView, WindowView
from sparkstorm.ui.storm.figures import millis

__all__ = ["lag", "visualization", "visualization_streams"]


def visualization_streams(topology: TopologyView) -> dict[str, Any]:
    """Return ``visualization-init``: all streams between components."""
    pairs = dict.fromkeys(
        (one.stream, one.component, part.id) for part in topology.components for one in part.inputs
    )
    return {
        "visualizationTable": [
            {
                ":row": [
                    {
                        ":stream": stream,
                        ":sani-stream": _plain(stream),
                        ":checked": not stream.startswith("__"),
                    }
                    for stream in dict.fromkeys(name for name, _, _ in pairs)
                ]
            }
        ]
    }


def _plain(stream: str) -> str:
    """Return a stream's name as part of an element's id.

    >>> _plain("a b/c")
    'sa_b_c'
    """
    return "s" + "".join(char if char.isascii() and char.isalnum() else "_" for char in stream)


def visualization(topology: TopologyView, window: WindowView) -> dict[str, Any]:
    """Return ``visualization``: each component with its inputs and figures, by its name."""
    named = {one.component: one for one in window.components}
    answer: dict[str, Any] = {}
    for part in topology.components:
        one = named.get(part.id)
        answer[part.id] = {
            ":type": part.kind,
            ":capacity": f"{one.capacity or 0:.3f}" if one else "0.000",
            ":latency": millis(one.complete if part.kind == "spout" else one.process)
            if one
            else "0.000",
            ":transferred": one.transferred if one else 0,
            ":stats": [
                {
                    ":host": topology.host,
                    ":port": topology.pid,
                    ":uptime_secs": int(window.secs),
                    ":transferred": {out.stream: out.transferred for out in one.outputs},
                }
            ]
            if one
            else [],
            ":link": f"/topologies/{topology.id}/component?id={part.id}",
            ":inputs": [
                {
                    ":component": got.component,
                    ":stream": got.stream,
                    ":sani-stream": _plain(got.stream),
                    ":grouping": got.grouping.partition("(")[0],
                }
                for got in part.inputs
            ],
        }
    return answer


def lag(topology: TopologyView, situation: SituationView) -> dict[str, Any]:
    """Return ``lag``: the offsets of each partition, by spout and topic.

    >>> _split("orders-eu-3"), _split("orders")
    (('orders-eu', '3'), ('orders', '0'))
    """
    answer: dict[str, Any] = {}
    kinds = {part.id: part.class_name for part in topology.components}
    for one in situation.partitions:
        spout = answer.setdefault(
            one.spout,
            {
                "spoutId": one.spout,
                "spoutType": kinds.get(one.spout, ""),
                "spoutLagResult": {},
            },
        )
        topic, number = _split(one.partition)
        spout["spoutLagResult"].setdefault(topic, {})[number] = {
            "consumerCommittedOffset": one.committed,
            "logHeadOffset": one.committed + one.lag,
            "lag": one.lag,
        }
    return answer


def _split(partition: str) -> tuple[str, str]:
    """Return a partition's topic and number, as Kafka's tools join them."""
    topic, _, number = partition.rpartition("-")
    return (topic, number) if topic and number.isdigit() else (partition, "0")
