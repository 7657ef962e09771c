"""Whole plans as text and as pictures, kept as files.

A change of a plan shows as a change of these files. ``UPDATE_SNAPSHOTS=1 pytest tests/plan`` writes
them anew; read the difference before you commit it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkstorm import (
    BasicBolt,
    BasicCollector,
    Bolt,
    Config,
    CustomGrouping,
    Spout,
    StatefulBolt,
    Stream,
    Topology,
    TopologyBuilder,
    Tuple,
)
from sparkstorm.planning.explain import explain, mermaid
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("UPDATE_SNAPSHOTS", "") not in ("", "0")


class Sentences(Spout):
    """Emits sentences."""

    outputs = "sentence string"

    def next_tuple(self) -> None:
        """Emit nothing."""


class Orders(Spout):
    """Emits orders, what is wrong with some, and commands to single tasks."""

    def __init__(self) -> None:
        self.outputs = {
            "default": "id long, customer string, amount decimal(10,2)",
            "bad": ["line", "why"],
            "commands": Stream("command string", direct=True),
            "unread": Stream([]),
        }

    def next_tuple(self) -> None:
        """Emit nothing."""


class Split(BasicBolt):
    """Splits."""

    outputs = "word string"

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


class Look(BasicBolt):
    """Waits for a database."""

    outputs = ("key", "found")

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


class Count(StatefulBolt):
    """Counts."""

    outputs = "word string, count long"

    def execute(self, tup: Tuple) -> None:
        """Emit nothing."""


class Sink(Bolt):
    """Emits nothing."""

    def execute(self, tup: Tuple) -> None:
        """Ack nothing."""


class Nearest(CustomGrouping):
    """Chooses the first task."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        return tasks[:1]


def word_count() -> Topology:
    """The example of every introduction."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Sentences())
    builder.set_bolt("split", Split(), 4).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", "word")
    return builder.create_topology()


def diamond_join() -> Topology:
    """Two ways from the spout to one bolt, one of them longer."""
    builder = TopologyBuilder()
    builder.set_spout("orders", Orders(), 2)
    builder.set_bolt("customer", Look(), 2, concurrency=16).fields_grouping("orders", "customer")
    builder.set_bolt("stock", Look(), 2, concurrency=8).shuffle_grouping("orders")
    builder.set_bolt("price", Look()).partial_key_grouping("stock", "key")
    join = builder.set_bolt("join", Count(), 3)
    join.fields_grouping("customer", ["key"]).fields_grouping("price", ["key"])
    join.fields_grouping("orders", ["customer"]).add_configuration("tick_tuple_freq_secs", 5)
    return builder.create_topology()


def several_streams() -> Topology:
    """Named and direct streams, one that nobody reads, and every grouping."""
    builder = TopologyBuilder()
    builder.set_spout("orders", Orders())
    builder.set_spout("more orders", Sentences())
    builder.set_bolt("errors", Sink()).global_grouping("orders", "bad")
    builder.set_bolt("worker", Sink(), 3).direct_grouping("orders", "commands").none_grouping(
        "orders"
    )
    builder.set_bolt("audit", Sink(), 2).all_grouping("orders").custom_grouping(
        "more orders", Nearest()
    )
    return builder.create_topology()


def local_chain() -> Topology:
    """Steps that run where the data is, and one that cannot."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Sentences(), 2)
    builder.set_bolt("parse", Split(), 2).local_or_shuffle_grouping("lines")
    builder.set_bolt("clean", Split(), 2).local_or_shuffle_grouping("parse")
    builder.set_bolt("count", Count(), 2).local_or_shuffle_grouping("clean")
    builder.set_bolt("round", Split(), 2).local_or_shuffle_grouping("count")
    builder.set_bolt("one", Sink()).local_or_shuffle_grouping("round")
    return builder.create_topology()


PLANS: dict[str, Callable[[], Plan]] = {
    "word-count": lambda: make_plan(word_count(), name="word-count", partitions=2),
    "diamond-join": lambda: make_plan(diamond_join(), name="orders", partitions=4),
    "several-streams": lambda: make_plan(several_streams(), partitions=2, taps=["orders"]),
    "local-chain": lambda: make_plan(local_chain(), partitions=2),
    "zero-ackers": lambda: make_plan(
        word_count(), name="untracked", config=Config(acker_executors=0), partitions=1
    ),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(("draw", "suffix"), [(explain, "txt"), (mermaid, "mmd")])
def test_the_plan_is_as_it_was(name: str, draw: Callable[[Plan], str], suffix: str) -> None:
    """To the letter."""
    kept = SNAPSHOTS / f"{name}.{suffix}"
    text = draw(PLANS[name]())
    if UPDATE:
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


def test_every_snapshot_is_of_a_plan() -> None:
    """A file that is left over would be believed."""
    assert {path.name for path in SNAPSHOTS.iterdir()} == {
        f"{name}.{suffix}" for name in PLANS for suffix in ("txt", "mmd")
    }
