"""Storm's own integration cases (TopologyIntegrationTest), under both runners."""

from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import FeederSpout, FixedSpout
from tests.tools.word_count import WordCount


class GlobalCount(ss.StatefulBolt):
    """Counts everything, as Storm's TestGlobalCount."""

    outputs = "count long"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get("all", 0) + 1
        self.state.put("all", count)
        self.collector.emit([count], anchors=tup)
        self.collector.ack(tup)


class AggregateAll(ss.StatefulBolt):
    """Emits the running count, as Storm's TestAggregatesCounter."""

    outputs = "agg long"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["count"] == 1:
            self.state.put("agg", self.state.get("agg", 0) + 1)
        self.collector.emit([self.state.get("agg", 0)], anchors=tup)
        self.collector.ack(tup)


class TaskIndex(ss.BasicBolt):
    """Emits the index of its task."""

    outputs = "index int"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([self.context.task_index])


class Branch(ss.Bolt):
    """Emits each tuple several times, anchored, as Storm's branching bolt."""

    outputs = "num int"

    def __init__(self, times: int) -> None:
        self.times = times

    def execute(self, tup: ss.Tuple) -> None:
        for number in range(self.times):
            self.collector.emit([number], anchors=tup)
        self.collector.ack(tup)


class Aggregate(ss.Bolt):
    """Collects so many tuples, emits one anchored to all of them and acks them all.

    What is left over at the end of the batch stays open: a batch is as far as a plain bolt sees.
    """

    outputs = "num int"

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.held: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        self.held.append(tup)
        if len(self.held) == self.amount:
            self.collector.emit([1], anchors=self.held)
            for held in self.held:
                self.collector.ack(held)
            self.held = []

    def finish_batch(self) -> None:
        self.held = []


class Identity(ss.Bolt):
    """Passes the value on and acks."""

    outputs = "num int"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([tup[0]], anchors=tup)
        self.collector.ack(tup)


class Ack(ss.Bolt):
    """Only acks."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class SelfAnchored(ss.Bolt):
    """Emits a tuple anchored twice to the same input, as Storm's dup-anchor bolt."""

    outputs = "num int"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([1], anchors=[tup, tup])
        self.collector.ack(tup)


def test_basic_topology(run_topology: Any) -> None:
    """testBasicTopology: words through fields and global groupings are counted exactly."""
    words = [["nathan"], ["bob"], ["joey"], ["nathan"]]
    builder = ss.TopologyBuilder()
    builder.set_spout("1", FixedSpout(words, "word string"), parallelism=3)
    builder.set_bolt("2", WordCount(), parallelism=4).fields_grouping("1", ["word"])
    builder.set_bolt("3", GlobalCount()).global_grouping("1")
    builder.set_bolt("4", AggregateAll()).global_grouping("2")
    with run_topology(builder.create_topology()) as play:
        statistics = play.drain()
        assert sorted(play.emitted("1")) == [("bob",), ("joey",), ("nathan",), ("nathan",)]
        assert sorted(play.emitted("2")) == [("bob", 1), ("joey", 1), ("nathan", 1), ("nathan", 2)]
        assert play.emitted("3") == [(1,), (2,), (3,), (4,)]
        assert max(play.emitted("4")) == (3,)
        assert (statistics.acked, statistics.failed, statistics.pending) == (4, 0, 0)


def test_multi_tasks_per_component(run_topology: Any) -> None:
    """testMultiTasksPerCluster: all grouping reaches each of six tasks once."""
    builder = ss.TopologyBuilder()
    builder.set_spout("1", FixedSpout([["a"]], "word string"))
    builder.set_bolt("2", TaskIndex(), parallelism=3).all_grouping("1").set_num_tasks(6)
    with run_topology(builder.create_topology()) as play:
        play.drain()
        assert sorted(play.emitted("2")) == [(0,), (1,), (2,), (3,), (4,), (5,)]


def test_acking(run_topology: Any) -> None:
    """testAcking: a tree is acked when its last aggregated branch is, and not before."""
    feeders = [FeederSpout("num int") for _ in range(3)]
    builder = ss.TopologyBuilder()
    for number, feeder in enumerate(feeders, 1):
        builder.set_spout(f"spout{number}", feeder)
    builder.set_bolt("branch2", Branch(2)).shuffle_grouping("spout1")
    builder.set_bolt("branch4", Branch(4)).shuffle_grouping("spout2")
    builder.set_bolt("branch1", Branch(1)).shuffle_grouping("spout3")
    declarer = builder.set_bolt("agg", Aggregate(3))
    for source in ("branch2", "branch4", "branch1"):
        declarer.shuffle_grouping(source)
    builder.set_bolt("branch", Branch(2)).shuffle_grouping("agg")
    builder.set_bolt("ack", Ack()).shuffle_grouping("branch")
    with run_topology(builder.create_topology(), {"batch_max_messages": 9}) as play:
        play.set_active(False)
        feeders[0].feed([1], msg_id="a")  # 2 branches
        feeders[2].feed([1], msg_id="b")  # and 1 make up an aggregate of 3
        play.set_active(True)
        play.settle()
        whole = feeders[0].acked == ["a"] and feeders[2].acked == ["b"]
        one_batch = play.statistics().batches == 1
        assert whole or not one_batch
        feeders[1].feed([1], msg_id="c")  # 4 branches: one is left over, so its tree stays open
        statistics = play.settle()
        assert feeders[1].acked == []
        assert statistics.pending >= 1
        assert statistics.failed == 0


def test_ack_branching(run_topology: Any) -> None:
    """testAckBranching: a tree that was split and joined again completes once."""
    feeder = FeederSpout("num int")
    builder = ss.TopologyBuilder()
    builder.set_spout("1", feeder)
    builder.set_bolt("2", Identity()).shuffle_grouping("1")
    builder.set_bolt("3", Identity()).shuffle_grouping("1")
    builder.set_bolt("4", Aggregate(2)).shuffle_grouping("2").shuffle_grouping("3")
    with run_topology(builder.create_topology()) as play:
        feeder.feed([1], msg_id="first")
        play.settle()
        assert feeder.acked == ["first"]
        feeder.feed([1], msg_id="second")
        play.settle()
        assert feeder.acked == ["first", "second"]
        assert feeder.failed == []


def test_ack_branching_leaves_a_half_tree_open(run_topology: Any) -> None:
    """testAckBranching: no ack while one of the branches is held."""
    feeder = FeederSpout("num int")
    builder = ss.TopologyBuilder()
    builder.set_spout("1", feeder)
    builder.set_bolt("2", Identity()).shuffle_grouping("1")
    builder.set_bolt("3", Identity()).shuffle_grouping("1")
    builder.set_bolt("4", Aggregate(3)).shuffle_grouping("2").shuffle_grouping("3")
    with run_topology(builder.create_topology()) as play:
        feeder.feed([1], msg_id="first")
        statistics = play.settle()
        assert (feeder.acked, feeder.failed, statistics.pending) == ([], [], 1)


def test_acking_self_anchor(run_topology: Any) -> None:
    """testAckingSelfAnchor: anchoring twice to the same tuple still completes: 1 ack, then 3."""
    feeder = FeederSpout("num int")
    builder = ss.TopologyBuilder()
    builder.set_spout("1", feeder)
    builder.set_bolt("2", SelfAnchored()).shuffle_grouping("1")
    builder.set_bolt("3", Ack()).shuffle_grouping("2")
    with run_topology(builder.create_topology()) as play:
        feeder.feed([1], msg_id=1)
        play.settle()
        assert feeder.acked == [1]
        feeder.feed([1], msg_id=2)
        feeder.feed([1], msg_id=3)
        play.settle()
        assert feeder.acked == [1, 2, 3]


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        (lambda bolt: bolt.shuffle_grouping("nobody"), "nobody"),
        (lambda bolt: bolt.shuffle_grouping("1", "nothing"), "nothing"),
        (lambda bolt: bolt.fields_grouping("1", ["absent"]), "absent"),
        (lambda bolt: bolt.shuffle_grouping("__system"), "__system"),
        (lambda bolt: bolt.shuffle_grouping("1", "__tick"), "__tick"),
    ],
)
def test_validate_topology_structure(wire: Any, named: str) -> None:
    """testValidateTopologystructure: a component, field or stream that is not there is refused."""
    builder = ss.TopologyBuilder()
    builder.set_spout("1", FixedSpout([], "word string"))
    wire(builder.set_bolt("2", Ack()))
    with pytest.raises(ss.TopologyError, match=named):
        builder.create_topology()


def test_inactive_topology(run_topology: Any) -> None:
    """testSubmitInactiveTopology: nothing is emitted while inactive, all of it afterwards."""
    feeder = FeederSpout("num int")
    builder = ss.TopologyBuilder()
    builder.set_spout("1", feeder)
    builder.set_bolt("2", Ack()).shuffle_grouping("1")
    with run_topology(builder.create_topology()) as play:
        feeder.feed([1], msg_id="before")
        play.settle()
        play.set_active(False)
        feeder.feed([1], msg_id="while")
        assert feeder.acked == ["before"]
        play.set_active(True)
        play.settle()
        assert feeder.acked == ["before", "while"]
