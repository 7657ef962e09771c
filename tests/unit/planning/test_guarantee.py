"""What exactly-once needs of a topology is asked before anything runs."""

import pytest

import sparkstorm as ss
from sparkstorm.planning.passes import make_plan
from sparkstorm.testing import FeederSpout, LogSpout, MemorySink

ONCE = ss.Config(processing_guarantee="exactly-once")


class Bare(ss.PartitionedSpout):
    """Does not say whether it can give messages again."""

    outputs = "word string"

    def plan(self, limit: int) -> list[ss.Split]:
        return []

    def read(self, split: ss.Split) -> list[list[str]]:
        return []


def topology(spout: ss.Spout | ss.PartitionedSpout, **settings: object) -> ss.Topology:
    """A spout and a sink."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", spout)
    sink = builder.set_bolt("sink", MemorySink()).shuffle_grouping("words")
    for key, value in settings.items():
        sink.add_configuration(key, value)
    return builder.create_topology()


def log() -> LogSpout:
    """A source that can give its messages again."""
    return LogSpout([["a"]], "word string")


def test_a_committer_needs_exactly_once() -> None:
    """Else its txids would mean nothing."""
    with pytest.raises(
        ss.ConfigError, match=r"bolt 'sink' is a committer.*set processing\.guarantee"
    ):
        make_plan(topology(log()))


@pytest.mark.parametrize(
    ("spout", "settings", "config", "why"),
    [
        (FeederSpout("word string"), {}, ONCE, "spout 'words' lives in the driver"),
        (Bare(), {}, ONCE, "set replayable = True on Bare"),
        (log(), {"tick_tuple_freq_secs": 1}, ONCE, "bolt 'sink' gets tick tuples"),
        (log(), {}, ONCE.override({"acker_executors": 0}), "topology.acker.executors is 0"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    spout: ss.Spout, settings: dict[str, object], config: ss.Config, why: str
) -> None:
    """Naming the component and the mend."""
    with pytest.raises(ss.ConfigError, match=why):
        make_plan(topology(spout, **settings), config=config)


def test_a_topology_that_fits_is_planned() -> None:
    """What its committers stage comes out in the driver, apart from what is tapped."""
    plan = make_plan(topology(log()), config=ONCE)
    assert plan.exactly_once
    assert plan.committers == ("sink",)
    assert {str(key) for key in plan.to_driver} == {"sink/default"}
    assert not plan.taps


class Talkative(ss.CommitterBolt):
    """Declares outputs."""

    outputs = "word string"

    def commit(self, transaction: ss.Transaction, staged: object) -> None:
        """Do nothing."""


def test_a_committer_has_no_readers_and_no_outputs() -> None:
    """Both are faults of the topology, reported together."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", log())
    builder.set_bolt("sink", Talkative()).shuffle_grouping("words")
    builder.set_bolt("reader", MemorySink()).shuffle_grouping("sink")
    with pytest.raises(ss.TopologyError) as caught:
        builder.create_topology()
    text = str(caught.value)
    assert "bolt 'sink' is a committer and declares outputs" in text
    assert "'reader' subscribes to 'sink', which is a committer" in text
