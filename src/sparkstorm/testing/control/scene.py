"""The scene of the fake control: a shop's topology, and what goes wrong in it."""

from dataclasses import dataclass
from typing import final

from sparkstorm.control.views import ComponentView, InputView, StreamView, TopologyView

__all__ = ["BOLTS", "TRACE", "USER_FRAME", "BoltScene", "topology_of"]

USER_FRAME = "shop/bolts.py:41 in execute"
"""The line of the user's own file at which ``enrich`` fails."""

TRACE = """Traceback (most recent call last):
  File "/srv/shop/bolts.py", line 41, in execute
    price = self._prices[order["sku"]]
            ~~~~~~~~~~~~^^^^^^^^^^^^^^
  File "/usr/lib/python3.11/collections/__init__.py", line 1014, in __getitem__
    raise KeyError(key)
KeyError: 'sku-8812'
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoltScene:
    """How a bolt of the scene fares.

    Attributes:
        rate: tuples per second.
        execute_secs: the time that one takes.
        failing: the share of tuples that fail.
    """

    rate: float
    execute_secs: float
    failing: float = 0.0


BOLTS = {
    "parse": BoltScene(rate=420, execute_secs=0.0004),
    "enrich": BoltScene(rate=410, execute_secs=0.0062, failing=0.021),
    "score": BoltScene(rate=408, execute_secs=0.0011),
    "total": BoltScene(rate=400, execute_secs=0.0007),
    "store": BoltScene(rate=400, execute_secs=0.0019, failing=0.001),
}


def topology_of(name: str, started: float) -> TopologyView:
    """Return the scene's topology, under a name."""
    return TopologyView(
        id=f"{name}-7f3a",
        name=name,
        version="0.1.0",
        pid=4711,
        host="driver-1",
        started=started,
        master="local[4]",
        checkpoint="/var/lib/shop/checkpoint",
        guarantee="at-least-once",
        partitions=4,
        ackers=2,
        message_timeout_secs=30.0,
        components=_components(),
        config={
            "topology.message.timeout.secs": 30,
            "topology.max.spout.pending": 5000,
            "topology.acker.executors": 2,
            "kafka.bootstrap.servers": "kafka-1:9092",
            "kafka.sasl.password": "***",
            "retry_backoff_secs": 1.0,
            "max_retries": 8,
        },
    )


def _components() -> list[ComponentView]:
    return [
        ComponentView(
            id="orders",
            kind="spout",
            class_name="sparkstorm.kafka.KafkaSpout",
            tasks=[1, 2],
            streams=[StreamView(name="default", fields=["order"])],
            settings={"topics": "orders", "group.id": "shop"},
        ),
        ComponentView(
            id="clicks",
            kind="spout",
            class_name="shop.spouts.ClickSpout",
            tasks=[3],
            streams=[StreamView(name="default", fields=["user", "page"])],
        ),
        _bolt("parse", [4, 5], [("orders", "default", "shuffle", [])], ["order"]),
        _bolt(
            "enrich",
            [6, 7, 8],
            [("parse", "default", "fields(order)", ["order"])],
            ["order", "price"],
        ),
        _bolt(
            "score",
            [9, 10],
            [("clicks", "default", "shuffle", []), ("parse", "default", "shuffle", [])],
            ["user", "score"],
        ),
        _bolt(
            "total",
            [11, 12],
            [("enrich", "default", "fields(order)", ["order"])],
            ["day", "sum"],
            stateful=True,
        ),
        _bolt(
            "store",
            [13],
            [("total", "default", "global", []), ("score", "default", "shuffle", [])],
            [],
        ),
    ]


def _bolt(
    name: str,
    tasks: list[int],
    inputs: list[tuple[str, str, str, list[str]]],
    fields: list[str],
    *,
    stateful: bool = False,
) -> ComponentView:
    return ComponentView(
        id=name,
        kind="bolt",
        class_name=f"shop.bolts.{name.title()}",
        tasks=tasks,
        stateful=stateful,
        streams=[StreamView(name="default", fields=fields)] if fields else [],
        inputs=[
            InputView(component=source, stream=stream, grouping=grouping, fields=by)
            for source, stream, grouping, by in inputs
        ],
    )
