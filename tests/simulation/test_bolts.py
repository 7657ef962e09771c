"""Windows, joins and bulk writers under random faults: the invariants of delivery hold for them.

Among them: a task that is run again sends the same packets, although ticks and time are involved;
and in the end nothing is pending, so nothing is held for ever.
"""

from collections.abc import Sequence
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.bolts import (
    CountWindow,
    HoldingBulkWriterBolt,
    JoinBolt,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
    WindowBolt,
)
from sparkstorm.testing import Faults, LogSpout, RequeueSpout, simulate

FAULTS = Faults(crash=0.1, repeated_task=0.2, lost_job=0.1)


class Numbers(WindowBolt):
    """Emits the numbers in each window."""

    outputs = ("numbers",)
    key_fields = ("key",)

    def __init__(self, window: Any, timestamp: str | None = None) -> None:
        self.window = window
        self.timestamp_field = timestamp
        self.idle_secs = 5.0 if timestamp else None

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        """Emit them."""
        collector.emit([[tup["n"] for tup in window]])


class Nowhere(HoldingBulkWriterBolt):
    """Refuses each third write at first."""

    flush_size = 4

    def write(self, tuples: Sequence[ss.Tuple]) -> None:
        """Refuse some."""
        if tuples[0].attempt == 1 and tuples[0]["n"] % 3 == 0:
            raise OSError("full")


class Sink(ss.BasicBolt):
    """Refuses some at their first try."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Take the others."""
        if tup.attempt == 1 and len(repr(tup.values)) % 5 == 0:
            raise ValueError("no")


def rows() -> list[list[Any]]:
    """Twelve numbers with two keys, and times that are not quite in order."""
    return [["ab"[n % 2], n + (-1) ** n * 2.0, n] for n in range(12)]


def one_bolt(bolt: ss.Bolt, *, partitioned: bool) -> ss.Topology:
    """A source, the bolt, and a sink that is hard to please."""
    kind = LogSpout if partitioned else RequeueSpout
    builder = ss.TopologyBuilder()
    builder.set_spout("source", kind(rows(), "key string, at double, n long"))
    builder.set_bolt("bolt", bolt, 2).fields_grouping("source", ["key"])
    if bolt.outputs:
        builder.set_bolt("sink", Sink()).shuffle_grouping("bolt")
    return builder.create_topology()


BOLTS = {
    "tumbling": lambda: Numbers(TumblingWindow(2)),
    "sliding": lambda: Numbers(SlidingWindow(3, 1)),
    "sessions": lambda: Numbers(SessionWindow(1)),
    "tumbling event time": lambda: Numbers(TumblingWindow(4), "at"),
    "sliding event time": lambda: Numbers(SlidingWindow(4, 2), "at"),
    "count": lambda: Numbers(CountWindow(3)),
    "sliding count": lambda: Numbers(CountWindow(3, 1)),
    "bulk": Nowhere,
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("partitioned", [False, True], ids=["hosted", "partitioned"])
@pytest.mark.parametrize("name", BOLTS)
def test_a_bolt_under_faults(name: str, partitioned: bool, seed: int) -> None:
    """Whatever happens, each message ends; those of windows that never fill, as dead letters."""
    config = ss.Config(max_retries=3, message_timeout_secs=20)
    topology = one_bolt(BOLTS[name](), partitioned=partitioned)
    outcome = simulate(topology, seed=seed, faults=FAULTS, config=config)
    assert outcome.statistics.pending == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_join_under_faults(seed: int) -> None:
    """Results are of equal keys, and at least one for each pair that was acked on both sides."""
    left, right = ([[n % 8, n] for n in range(count)] for count in (12, 9))
    queue = RequeueSpout(left, "key long, n long")
    spouts: dict[str, ss.Spout | ss.PartitionedSpout] = {
        "left": queue,
        "right": LogSpout(right, "key long, n long"),
    }
    join = (
        JoinBolt("left", "key")
        .left_join("right", "key", wait_secs=3 if seed % 2 else 12)
        .select("left:key as one, right:key as other, left:n as n, right:n as m")
    )
    builder = ss.TopologyBuilder()
    declared = builder.set_bolt("join", join, 2)
    for name, spout in spouts.items():
        builder.set_spout(name, spout)
        declared.fields_grouping(name, ["key"])
    builder.set_bolt("sink", Sink()).shuffle_grouping("join")
    config = ss.Config(max_retries=3, message_timeout_secs=20)
    outcome = simulate(builder.create_topology(), seed=seed, faults=FAULTS, config=config)
    results = outcome.values("join")
    assert all(other is None or one == other for one, other, *_ in results)
    assert {n for _, _, n, _ in results} >= set(queue.acked)
