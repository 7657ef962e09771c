"""The builder: what is declared is what the topology has."""

import pickle
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import cloudpickle
import pytest

from sparkstorm import (
    BasicBolt,
    BasicCollector,
    CustomGrouping,
    PartitionedSpout,
    Split,
    Spout,
    StatefulBolt,
    Stream,
    Topology,
    TopologyBuilder,
    Tuple,
)
from sparkstorm.topology.builder import BoltDeclarer
from sparkstorm.topology.graph import Subscription
from sparkstorm.topology.grouping import (
    All,
    Custom,
    Direct,
    FieldsGrouping,
    Global,
    Grouping,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
)


class Lines(Spout):
    """A source."""

    outputs = MappingProxyType(
        {"default": "line string, n long", "aside": Stream(["x"], direct=True)}
    )

    def next_tuple(self) -> None:
        """Emit nothing."""


class Log(PartitionedSpout):
    """A partitioned source."""

    outputs = "line string"

    def plan(self, limit: int) -> list[Split]:
        return []

    def read(self, split: Split) -> Iterable[Sequence[Any] | None]:
        return []


class Split_(BasicBolt):
    """A step."""

    outputs = "word string"

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


class Count(StatefulBolt):
    """A step with state, and without outputs."""

    def execute(self, tup: Tuple) -> None:
        """Count nothing."""


class First(CustomGrouping):
    """A grouping of a user's own."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        return tasks[:1]


OWN = First()


def small() -> TopologyBuilder:
    """One spout and one bolt."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 2)
    builder.set_bolt("split", Split_(), parallelism=3, concurrency=4).shuffle_grouping("lines")
    return builder


def test_components_are_as_they_were_added() -> None:
    """In their order, with their parallelism, streams and subscriptions."""
    topology = small().create_topology()
    assert list(topology.components) == ["lines", "split"]
    assert [spec.id for spec in topology.spouts] == ["lines"]
    assert [spec.id for spec in topology.bolts] == ["split"]
    lines, split = topology.components.values()
    assert (lines.parallelism, lines.concurrency, lines.subscriptions) == (2, 1, ())
    assert (split.parallelism, split.concurrency) == (3, 4)
    assert list(lines.streams) == ["default", "aside"]
    assert (lines.is_spout, split.is_spout) == (True, False)
    assert repr(topology) == "Topology(lines, split)"


@pytest.mark.parametrize(
    ("method", "arguments", "grouping"),
    [
        ("shuffle_grouping", (), Shuffle()),
        ("fields_grouping", (["line", "n"],), FieldsGrouping(("line", "n"))),
        ("fields_grouping", ("line, n",), FieldsGrouping(("line", "n"))),
        ("partial_key_grouping", ("line",), PartialKey(("line",))),
        ("all_grouping", (), All()),
        ("global_grouping", (), Global()),
        ("none_grouping", (), NoneGrouping()),
        ("local_or_shuffle_grouping", (), LocalOrShuffle()),
        ("custom_grouping", (OWN,), Custom(OWN)),
    ],
)
def test_each_grouping_has_a_method(
    method: str, arguments: tuple[Any, ...], grouping: Grouping
) -> None:
    """It can be chained, and reads the default stream."""
    builder = small()
    declarer = builder.set_bolt("more", Split_())
    assert getattr(declarer, method)("lines", *arguments) is declarer
    expected = Subscription(source="lines", stream="default", grouping=grouping)
    assert builder.create_topology().components["more"].subscriptions == (expected,)


def test_a_stream_is_named_last() -> None:
    """Several streams may be read by one bolt, by one grouping each."""
    builder = small()
    declarer = builder.set_bolt("more", Split_()).direct_grouping("lines", "aside")
    declarer.global_grouping("split").all_grouping("lines", stream="default")
    edges = builder.create_topology().components["more"].subscriptions
    assert [(edge.source, edge.stream, edge.grouping) for edge in edges] == [
        ("lines", "aside", Direct()),
        ("split", "default", Global()),
        ("lines", "default", All()),
    ]


def test_subscribers_are_found_by_stream() -> None:
    """In the order in which they were added."""
    builder = small()
    builder.set_bolt("more", Split_()).all_grouping("lines").direct_grouping("lines", "aside")
    topology = builder.create_topology()
    found = [spec.id for spec, _ in topology.subscribers("lines", "default")]
    assert found == ["split", "more"]
    assert [edge.grouping for _, edge in topology.subscribers("lines", "aside")] == [Direct()]
    assert list(topology.subscribers("split", "default")) == []


def test_a_number_of_tasks_beats_the_parallelism() -> None:
    """As in Storm, where the one is of tasks and the other of threads."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 2).set_num_tasks(5).set_max_spout_pending(100)
    declarer: BoltDeclarer = builder.set_bolt("split", Split_()).set_num_tasks(3)
    declarer.add_configuration("user", {"a": 1}).shuffle_grouping("lines")
    lines, split = builder.create_topology().components.values()
    assert (lines.parallelism, lines.settings) == (5, {"max_spout_pending": 100})
    assert (split.parallelism, split.settings) == (3, {"user": {"a": 1}})


def test_kinds_of_components_are_known() -> None:
    """Partitioned spouts are spouts; stateful bolts keep state."""
    builder = TopologyBuilder()
    builder.set_spout("log", Log())
    builder.set_bolt("count", Count()).global_grouping("log")
    log, count = builder.create_topology().components.values()
    assert (log.is_spout, log.is_stateful, count.is_stateful) == (True, False, True)
    assert count.streams == {}


def test_a_topology_cannot_be_changed() -> None:
    """It was checked as it is."""
    topology = small().create_topology()
    with pytest.raises(TypeError):
        topology.components["x"] = topology.components["lines"]  # type: ignore[index]


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_a_topology_travels(dumps: Any) -> None:
    """To the workers."""
    found = pickle.loads(dumps(small().create_topology()))
    assert isinstance(found, Topology)
    assert list(found.components) == ["lines", "split"]
    assert isinstance(found.components["split"].component, Split_)
