"""Messages, for people: which are unfinished, where, why, and how their attempts went."""

import functools
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.batches.messages.kept import Kept
from sparkstorm.batches.messages.listing import Wanted
from sparkstorm.control.views import MessageView, NodeView
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.testing import LocalRunner, ManualClock
from sparkstorm.testing.sources import LogSpout


class Lines(ReplayingSpout):
    """Emits lines, each under its own text."""

    outputs = ("line",)

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def next_message(self) -> tuple[str, list[str]] | None:
        if not self.lines:
            return None
        line = self.lines.pop(0)
        return line, [line]


class Split(ss.BasicBolt):
    """Cuts a line into words."""

    outputs = ("word",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup[0].split():
            collector.emit([word])


class Refuse(ss.BasicBolt):
    """Fails on one word."""

    def __init__(self, bad: str = "bad") -> None:
        self.bad = bad

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup[0] == self.bad:
            raise ValueError(f"{tup[0]} is refused")


class Hold(ss.StatefulBolt):
    """Holds every tuple for ever."""

    def init_state(self, state: ss.State) -> None:
        super().init_state(state)
        self.held = state.tuples("held")

    def execute(self, tup: ss.Tuple) -> None:
        self.held.add("all", tup)


def words(spout: Any, last: Any, *, parallelism: int = 2) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", spout)
    builder.set_bolt("split", Split(), parallelism).shuffle_grouping("lines")
    builder.set_bolt("last", last, parallelism).fields_grouping("split", ["word"])
    return builder.create_topology()


def run(topology: ss.Topology, **settings: Any) -> LocalRunner:
    return LocalRunner(topology, clock=ManualClock(), config=ss.Config(**settings))


def listed(runner: LocalRunner, **wanted: Any) -> list[MessageView]:
    return runner.coordinator.inquiry.messages(Wanted(**wanted)).messages


def kept(runner: LocalRunner, name: str) -> Kept:
    found = runner.coordinator.inquiry.kept(name)
    assert found is not None
    return found


def edges(nodes: list[NodeView]) -> set[tuple[str, str, str]]:
    """Return who sent whom which word, and how that ended."""
    return {(one.source, one.component, f"{[*one.values.values()]} {one.state}") for one in nodes}


def test_a_message_that_failed_says_where_why_and_when_it_is_tried_again() -> None:
    with run(words(Lines("a b", "c bad"), Refuse())) as runner:
        runner.step()
        runner.plan_batch()
        (message,) = listed(runner)
    assert (message.name, message.spout, message.state, message.attempt) == (
        "c bad",
        "lines",
        "retry",
        2,
    )
    assert (message.held_by, message.reason) == (["last"], "error")
    assert message.why == "ValueError: bad is refused"


def test_the_second_attempt_is_traced_from_the_spout_to_the_users_line() -> None:
    clock = ManualClock()
    config = ss.Config(max_retries=3)
    with LocalRunner(words(Lines("c bad"), Refuse()), clock=clock, config=config) as runner:
        for _ in range(4):
            runner.step()
            clock.advance(1000)
        attempts = [one.view() for one in kept(runner, "c bad").attempts]
    assert [one.outcome for one in attempts[:2]] == ["error", "error"]
    tree = attempts[1].tree
    assert tree is not None
    assert edges(tree.nodes) == {
        ("lines", "split", """["'c bad'"] acked"""),
        ("split", "last", """["'c'"] acked"""),
        ("split", "last", """["'bad'"] failed"""),
    }
    first, *others = tree.nodes
    assert first.parents == []
    assert all(one.parents == [first.id] for one in others)
    (failed,) = [one for one in others if one.state == "failed"]
    assert "test_messages.py" in failed.frame
    assert failed.why == "ValueError: bad is refused"
    assert failed.at is not None
    assert failed.secs is not None


def test_a_good_message_of_each_batch_is_traced() -> None:
    with run(words(Lines("a b", "c d"), Refuse())) as runner:
        runner.run_until_idle()
        message = kept(runner, "a b")
    assert message.state == "acked"
    (attempt,) = message.attempts
    assert attempt.nodes is not None
    assert {one.state for one in attempt.nodes.values()} == {"acked"}
    assert len(attempt.nodes) == 3


def test_a_chain_of_bolts_shows_each_of_its_tuples() -> None:
    """An only child inherits its parent's share of the root."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", Lines("tea"))
    builder.set_bolt("one", Split()).shuffle_grouping("lines")
    builder.set_bolt("two", Split()).shuffle_grouping("one")
    builder.set_bolt("last", Refuse()).shuffle_grouping("two")
    with run(builder.create_topology()) as runner:
        runner.run_until_idle()
        tree = kept(runner, "tea").attempts[0].view().tree
    assert tree is not None
    assert [(one.source, one.component) for one in tree.nodes] == [
        ("lines", "one"),
        ("one", "two"),
        ("two", "last"),
    ]
    above = ["", *(one.id for one in tree.nodes)]
    assert [one.parents for one in tree.nodes] == [[], [above[1]], [above[2]]]


def test_nothing_is_traced_if_nobody_wants_it() -> None:
    with run(words(Lines("a b", "c bad"), Refuse()), trace_messages=0, max_retries=0) as runner:
        runner.run_until_idle()
        assert runner.coordinator.inquiry.kept("a b") is None
        (attempt,) = kept(runner, "c bad").attempts  # the failure is kept all the same
    assert attempt.nodes is None
    assert attempt.outcome == "error"


def test_a_held_message_says_which_bolt_holds_it() -> None:
    with run(words(Lines("a b"), Hold())) as runner:
        runner.step()
        runner.plan_batch()
        (message,) = listed(runner)
    assert message.state == "open"
    assert message.held_by == ["last"]


def test_a_followed_message_is_traced_among_thousands() -> None:
    lines = [f"line {number}" for number in range(3000)]
    with run(words(Lines(*lines), Refuse())) as runner:
        runner.coordinator.inquiry.follow("2718")
        runner.run_until_idle()
        attempt = kept(runner, "line 2718").attempts[0]
        assert runner.coordinator.inquiry.kept("line 2719") is None
    assert attempt.nodes is not None
    assert len(attempt.nodes) == 3


def test_a_message_is_followed_by_its_payload_through_all_bolts() -> None:
    """Where the names are offsets; tuples that lost the text are in the tree as well."""
    rows = [[f"key-{number} word"] for number in range(200)]
    topology = words(LogSpout(rows, ["line"], split_rows=50), Refuse())
    with run(topology, trace_messages=10) as runner:
        runner.coordinator.inquiry.follow("key-123 ")
        runner.run_until_idle()
        message = kept(runner, "123")
    assert message.state == "acked"
    nodes = [*(message.attempts[0].nodes or {}).values()]
    assert edges(nodes) == {
        ("lines", "split", """["'key-123 word'"] acked"""),
        ("split", "last", """["'key-123'"] acked"""),
        ("split", "last", """["'word'"] acked"""),
    }


def test_messages_of_a_partitioned_spout_are_named_and_hurried() -> None:
    """Retry now: what waits for an hour is tried in the next batch."""
    clock = ManualClock()
    config = ss.Config(max_retries=5, retry_backoff_secs=3600.0, retry_backoff_max_secs=3600.0)
    topology = words(LogSpout([["a"], ["bad"], ["c"]], ["line"]), Refuse(), parallelism=1)
    with LocalRunner(topology, clock=clock, config=config) as runner:
        runner.step()
        runner.plan_batch()
        (message,) = listed(runner)
        assert (message.name, message.state) == ("1", "retry")
        assert message.due_secs is not None
        assert message.due_secs > 1000
        assert not runner.step()
        assert runner.coordinator.inquiry.hurry([message.id]) == 1
        assert runner.step()
        assert len(kept(runner, message.id).attempts) == 2


def test_a_message_of_a_hosted_spout_is_retried_now() -> None:
    clock = ManualClock()
    config = ss.Config(max_retries=5, retry_backoff_secs=3600.0, retry_backoff_max_secs=3600.0)
    with LocalRunner(words(Lines("bad", "a"), Refuse()), clock=clock, config=config) as runner:
        runner.run_until_idle()
        (message,) = listed(runner)
        assert not runner.step()
        assert runner.coordinator.inquiry.hurry([message.id, "none"]) == 1
        assert runner.step()
        assert len(kept(runner, "bad").attempts) == 2


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"state": "retry"}, ["bad 1", "bad 2"]),
        ({"state": "open"}, []),
        ({"name": "2"}, ["bad 2"]),
        ({"component": "last"}, ["bad 1", "bad 2"]),
        ({"component": "split"}, []),
        ({"spout": "none"}, []),
        ({"limit": 1}, ["bad 1"]),
    ],
)
def test_messages_are_filtered(wanted: dict[str, Any], names: list[str]) -> None:
    with run(words(Lines("bad 1", "a", "bad 2"), Refuse())) as runner:
        runner.step()
        runner.plan_batch()
        assert sorted(one.name for one in listed(runner, **wanted)) == names
        total = runner.coordinator.inquiry.messages(Wanted(**wanted)).total
        assert total == (2 if "limit" in wanted else len(names))


@pytest.mark.sweep
def test_a_million_failures_do_not_fill_the_chronicle() -> None:
    """Only some of those that fail at once are named."""
    lines = [f"bad {number}" for number in range(5_000)]
    with run(words(Lines(*lines), Refuse()), max_retries=0, dead_letters="off") as runner:
        runner.run_until_idle()
        found = [runner.coordinator.inquiry.kept(line) for line in lines]
    assert 100 <= sum(one is not None for one in found) < 5_000


@pytest.mark.sweep
def test_the_chronicle_keeps_the_newest_messages_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparkstorm.batches.messages.chronicle._MOST_MESSAGES", 50)
    monkeypatch.setattr("sparkstorm.batches.messages.chronicle._MOST_NODES", 20)
    lines = [f"line {number}" for number in range(400)]
    topology = words(Lines(*lines), Refuse())
    with run(topology, batch_min_messages=1, batch_max_messages=1) as runner:
        runner.run_until_idle()
        found = [runner.coordinator.inquiry.kept(line) for line in lines]
    here = [one for one in found if one is not None]
    assert len(here) == 50
    assert found[-1] is not None
    assert sum(one.nodes for one in here) <= 20


def _note(counted: set[str], key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
    counted.update(map(str, rows))


def test_tracing_does_not_change_what_tasks_send() -> None:
    """Spark may run a stage of one run with tracing, and again without."""
    told: list[set[str]] = []
    for traced in (0, 100):
        counted: set[str] = set()
        clock = ManualClock()
        with LocalRunner(
            words(Lines("a b", "c bad"), Refuse()),
            clock=clock,
            config=ss.Config(trace_messages=traced, max_retries=2),
            taps=["split"],
            on_tap=functools.partial(_note, counted),
        ) as runner:
            for _ in range(5):
                runner.step()
                clock.advance(1000)
        told.append(counted)
    assert told[0] == told[1]
