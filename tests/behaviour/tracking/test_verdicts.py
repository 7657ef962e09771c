"""How messages end: once, for one reason, in time, and in little memory."""

import itertools
from collections import Counter
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import FeederSpout, LogSpout, RequeueSpout


class ByWord(ss.Bolt):
    """Does to a tuple what it says."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple) -> None:
        word = tup["word"]
        self.collector.emit([word], anchors=tup)
        if word == "raise":
            raise ValueError("cannot bear it")
        if word in ("fail", "fail twice"):
            self.collector.fail(tup, "the database said no")
        elif word != "forget":
            self.collector.ack(tup)


class FailTwice(ss.Bolt):
    """Fails what is to fail twice."""

    def execute(self, tup: ss.Tuple) -> None:
        if tup["word"] == "fail twice":
            self.collector.fail(tup, "and again")
        else:
            self.collector.ack(tup)


class Forget(ss.Bolt):
    """Never acks anything."""

    def execute(self, tup: ss.Tuple) -> None:
        """Leave it."""


def wired(spout: Any, first: ss.Bolt, *others: ss.Bolt, tasks: int = 1) -> ss.Topology:
    """A chain of a spout and bolts."""
    builder = ss.TopologyBuilder()
    builder.set_spout("source", spout)
    names = ["source", "first", *(f"next{n}" for n in range(len(others)))]
    for (before, name), bolt in zip(itertools.pairwise(names), (first, *others), strict=True):
        builder.set_bolt(name, bolt, tasks).all_grouping(before)
    return builder.create_topology()


def test_reasons_are_kept_apart(run_locally: Any) -> None:
    """Each failure tells its own reason, where it was and what happened; so does the count."""
    feeder = FeederSpout("word string")
    with run_locally(wired(feeder, ByWord(), FailTwice())) as play:
        for word in ("raise", "fail", "forget", "well"):
            feeder.feed([word], msg_id=word)
        play.settle()
        play.clock.advance(40)
        statistics = play.settle()
    why = dict(zip(feeder.failed, feeder.failures, strict=True))
    assert feeder.acked == ["well"]
    assert {word: failure.reason for word, failure in why.items()} == {
        "raise": ss.Reason.ERROR,
        "fail": ss.Reason.FAILED,
        "forget": ss.Reason.TIMEOUT,
    }
    assert statistics.failures == {"error": 1, "failed": 1, "timeout": 1}
    assert (why["fail"].component, why["fail"].message) == ("first", "the database said no")
    assert (why["raise"].component, why["raise"].message) == ("first", "ValueError: cannot bear it")
    assert "in execute" in why["raise"].traceback
    assert why["fail"].traceback == ""
    assert {why["raise"].task, why["fail"].task} == set(statistics.components["first"])
    assert "never acked it" in why["forget"].message


@pytest.mark.parametrize("tasks", [1, 3])
def test_one_verdict_for_many_failures(run_locally: Any, tasks: int) -> None:
    """However many tuples of a tree fail, in however many tasks, the message fails once."""
    feeder = FeederSpout("word string")
    with run_locally(wired(feeder, ByWord(), FailTwice(), tasks=tasks)) as play:
        for number in range(4):
            feeder.feed(["fail twice"], msg_id=number)
        feeder.feed(["forget"], msg_id="open")
        statistics = play.settle()
        failed = sum(statistics.component(name).failed for name in ("first", "next0"))
        assert failed == 4 * (tasks + tasks**2)
        play.clock.advance(100)
        play.settle()
    assert Counter(feeder.failed) == Counter([0, 1, 2, 3, "open"])
    assert feeder.acked == []


def test_each_attempt_is_numbered_in_its_failure(run_locally: Any) -> None:
    """For both kinds of spout, up to the last one."""
    config = {"max_retries": 2, "retry_backoff_secs": 0}
    for spout in (RequeueSpout([["fail"]], "word string"), LogSpout([["fail"]], "word string")):
        with run_locally(wired(spout, ByWord(), FailTwice()), config) as play:
            heard: list[int] = []
            coordinator: Any = play.runner.coordinator
            tasks: list[Any] = [*coordinator.hosted.values(), *coordinator.partitioned.values()]
            (task,) = tasks
            fail = task.spout.fail
            task.spout.fail = lambda *a, fail=fail, heard=heard: (
                heard.append(a[-1].attempt),
                fail(*a),
            )
            statistics = play.settle()
            assert heard == [1, 2, 3]
            assert (statistics.given_up, statistics.failed) == (1, 3)


@pytest.mark.parametrize("timeout", [0.5, 10.0, 30.0])
@pytest.mark.parametrize("mode", ["emit", "progress"])
@pytest.mark.parametrize("offset", [0.0, 0.37, 0.99])
def test_time_out_comes_between_the_timeout_and_a_tenth_more(
    run_locally: Any, timeout: float, mode: str, offset: float
) -> None:
    """Measured from the end of its batch, wherever between two rotations; in small steps."""
    feeder = FeederSpout("word string")
    config = {"message_timeout_secs": timeout, "message_timeout_mode": mode}
    with run_locally(wired(feeder, Forget()), config) as play:
        play.clock.advance(timeout * offset / 10)
        feeder.feed(["one"], msg_id=1)
        play.settle()
        emitted = play.clock.monotonic()
        while not feeder.failed:
            play.clock.advance(timeout / 100)
            play.settle()
        waited = play.clock.monotonic() - emitted
    assert timeout * 0.999 <= waited <= timeout * 1.12  # a tenth, and the step of the clock


def test_memory_is_bounded_when_a_bolt_never_acks(run_locally: Any) -> None:
    """Ten minutes: what is open stays within max_spout_pending, and times out 1 + 2 times.

    Then it is given up, and others have their turn.
    """
    spout = RequeueSpout([[f"w{n}"] for n in range(300)], "word string")
    config = {
        "max_spout_pending": 20,
        "max_retries": 2,
        "message_timeout_secs": 10,
        "batch_max_messages": 10,
    }
    with run_locally(wired(spout, Forget()), config) as play:
        held, pending = [], []
        for _ in range(600):
            play.clock.advance(1)
            play.runner.step()
            held.append(play.runner.coordinator.ledger_bytes)
            pending.append(play.statistics().pending)
        statistics = play.drain()
    assert max(pending) == 20
    assert max(held[:100]) == max(held[100:]) == 20 * 17
    assert held[-1] == 0
    assert spout.given_up == list(range(300))
    assert (statistics.acked, statistics.failures) == (0, {"timeout": 900})
