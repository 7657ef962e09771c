"""One message, run through a topology in the test's process."""

from collections.abc import Sequence
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import MessageFailed, run_message

SEEN: list[str] = []
"""What bolts did; a module's list, since tasks work with copies of the bolts."""


class Split(ss.BasicBolt):
    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["line"].split():
            collector.emit([word])


class Check(ss.Bolt):
    outputs = "word string"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["word"] == "bad":
            raise ValueError("a bad word")
        if tup["word"] == "worse":
            self.collector.fail(tup, "a worse word")
            return
        self.collector.emit([tup["word"]], anchors=[tup])
        self.collector.ack(tup)


class Keep(ss.CommitterBolt):
    def stage(self, tup: ss.Tuple) -> Any:
        SEEN.append(f"staged {tup['word']}")
        return tup["word"]

    def connect(self, config: ss.Config) -> None:
        SEEN.append("connected")

    def commit(self, transaction: ss.Transaction, staged: Sequence[Any]) -> None:
        SEEN.append("committed")


class Never(ss.PartitionedSpout):
    outputs = "line string"
    replayable = True

    def open(self, *_: Any) -> None:
        SEEN.append("opened")

    def plan(self, limit: int) -> list[ss.Split]:
        SEEN.append("asked")
        return []

    def read(self, split: ss.Split) -> list[Any]:
        SEEN.append("read")
        return []


@pytest.fixture
def topology() -> ss.Topology:
    SEEN.clear()
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", Never())
    builder.set_bolt("split", Split()).shuffle_grouping("lines")
    builder.set_bolt("check", Check(), 2).fields_grouping("split", "word")
    builder.set_bolt("keep", Keep()).shuffle_grouping("check")
    return builder.create_topology()


def test_no_spout_runs_and_no_committer_commits(topology: ss.Topology) -> None:
    run_message(topology, "lines", {"line": "a"})
    assert SEEN == ["staged a"]


def test_the_error_is_the_bolts_own(topology: ss.Topology) -> None:
    """Its traceback ends in the bolt, so that pytest shows the line."""
    with pytest.raises(ValueError, match="a bad word") as caught:
        run_message(topology, "lines", {"line": "a bad one"})
    assert caught.traceback[-1].name == "execute"
    assert str(caught.traceback[-1].path) == __file__


def test_a_failure_without_an_error_has_its_reason(topology: ss.Topology) -> None:
    with pytest.raises(MessageFailed, match="a worse word") as caught:
        run_message(topology, "lines", {"line": "worse"})
    assert caught.value.failure.component == "check"


def test_only_the_way_to_a_bolt_runs(topology: ss.Topology) -> None:
    run_message(topology, "lines", {"line": "bad worse a"}, until="split")
    assert SEEN == []


def test_the_topology_itself_is_left_as_it_was(topology: ss.Topology) -> None:
    before = {name: spec.component for name, spec in topology.components.items()}
    with pytest.raises(ValueError, match="a bad word"):
        run_message(topology, "lines", {"line": "bad"})
    assert {name: type(spec.component) for name, spec in topology.components.items()} == {
        name: type(component) for name, component in before.items()
    }
    assert type(before["check"]) is Check


@pytest.mark.parametrize(
    ("spout", "payload", "until", "words"),
    [
        ("lines", {"text": "a"}, None, "other fields now: line"),
        ("lines", {"line": 3}, None, "line"),
        ("other", {"line": "a"}, None, "no spout 'other'"),
        ("lines", {"line": "a"}, "nowhere", "no component 'nowhere': its bolts are split"),
    ],
)
def test_a_mistake_is_named(
    topology: ss.Topology, spout: str, payload: dict[str, Any], until: str | None, words: str
) -> None:
    with pytest.raises(ss.ConfigError, match=words):
        run_message(topology, spout, payload, until=until)


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_stateful_bolt_begins_with_the_given_state(backend: str) -> None:
    """Each run anew, whatever the run before has put."""

    class Count(ss.StatefulBolt):
        def execute(self, tup: ss.Tuple) -> None:
            if self.state.add(tup["word"]) > 2:
                raise ValueError(f"{tup['word']} for the third time")
            self.collector.ack(tup)

    builder = ss.TopologyBuilder()
    builder.set_spout("words", ss.spouts.IteratorSpout([], "word string"))
    bolt = builder.set_bolt("count", Count(), 2).fields_grouping("words", "word")
    bolt.add_configuration("state_backend", backend)
    topology = builder.create_topology()
    run_message(topology, "words", {"word": "a"})
    for _ in range(2):
        with pytest.raises(ValueError, match="a for the third time"):
            run_message(topology, "words", {"word": "a"}, state={"count": {"a": 2}})
    run_message(topology, "words", {"word": "b"}, state={"count": {"a": 2}})
    with pytest.raises(ss.ConfigError, match="'words' is no stateful bolt"):
        run_message(topology, "words", {"word": "b"}, state={"words": {}})
