"""Tuples that are held over batches: matched, failed, timed out, and never counted twice."""

from typing import Any, cast

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.errors import AttributeStateError
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

PATIENT = {"message_timeout_secs": 600}
"""A cold Spark on a busy machine may need longer than the usual time-out for its first batch."""


class Pair(ss.StatefulBolt):
    """Waits for two tuples of a key; emits one result anchored to both, and acks both."""

    outputs = "key string, both string"

    def init_state(self, state: ss.State) -> None:
        super().init_state(state)
        self.waiting = state.tuples("waiting")

    def execute(self, tup: ss.Tuple) -> None:
        if tup["side"] == "bad":
            for other in self.waiting.pop(tup["key"]):
                self.collector.ack(other)
            raise ValueError("bad side")
        others = self.waiting.get(tup["key"])
        if not others:
            self.waiting.add(tup["key"], tup)
            return
        [other] = others
        self.collector.emit([tup["key"], other["side"] + tup["side"]], anchors=[other, tup])
        self.collector.ack(other)
        self.collector.ack(tup)


class Hoard(ss.Bolt):
    """Keeps a tuple in an attribute."""

    def execute(self, tup: ss.Tuple) -> None:
        self.kept = [tup]


class HoardInState(ss.StatefulBolt):
    """Puts a tuple into its key-value state."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.put("tuple", tup)


class FailOdd(ss.Bolt):
    """Fails what it is told to fail, and acks the rest."""

    def execute(self, tup: ss.Tuple) -> None:
        if "!" in tup["both"]:
            self.collector.fail(tup, "told to")
        else:
            self.collector.ack(tup)


def paired(bolt: Any = None) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout("key string, side string")
    builder = ss.TopologyBuilder()
    builder.set_spout("sides", feeder)
    builder.set_bolt("pair", bolt or Pair(), parallelism=2).fields_grouping("sides", ["key"])
    if bolt is None:
        builder.set_bolt("sink", FailOdd()).shuffle_grouping("pair")
    return feeder, builder.create_topology()


def held(runner: LocalRunner) -> int:
    """How many tuples the committed state holds, read anew as after a restart."""
    from sparkstorm.state.image import StateImage

    count = 0
    for store in runner._jobs.stores().values():
        image = StateImage()
        image.load(store)
        count += len(image.tuples("waiting"))
    return count


def test_a_pair_is_acked_when_its_second_half_came(run_topology: Any) -> None:
    """The first half is held over batches; the result belongs to the trees of both."""
    feeder, topology = paired()
    with run_topology(topology, PATIENT) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        feeder.feed(["b", "1"], msg_id="b1")
        play.settle()
        assert feeder.acked == []
        assert play.statistics().pending == 2
        feeder.feed(["a", "2"], msg_id="a2")
        play.settle()
        assert sorted(feeder.acked) == ["a1", "a2"]
        feeder.feed(["b", "2"], msg_id="b2")
        statistics = play.settle()
        assert sorted(play.emitted("pair")) == [("a", "12"), ("b", "12")]
        assert sorted(feeder.acked) == ["a1", "a2", "b1", "b2"]
        assert (statistics.pending, statistics.failed) == (0, 0)


def test_a_result_that_fails_fails_both(run_topology: Any) -> None:
    """A multi-anchored tuple that fails, fails every root, the held one's too."""
    feeder, topology = paired()
    with run_topology(topology, PATIENT) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        play.settle()
        feeder.feed(["a", "!"], msg_id="a!")
        play.settle()
        assert sorted(feeder.failed) == ["a!", "a1"]
        assert play.statistics().pending == 0


def test_unmatched_times_out_and_is_dropped(run_locally: Any) -> None:
    """What waits too long fails, leaves the state without any further input, and cannot match."""
    feeder, topology = paired()
    with run_locally(topology, {"message_timeout_secs": 10}) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        play.settle()
        assert held(play.runner) == 1
        play.clock.advance(12)
        play.settle()
        assert feeder.failed == ["a1"]
        assert held(play.runner) == 0
        assert play.statistics().pending == 0
        feeder.feed(["a", "1 again"], msg_id="a1 again")  # the source gives it again
        feeder.feed(["a", "2"], msg_id="a2")
        play.settle()
        assert play.emitted("pair") == [("a", "1 again2")]
        assert sorted(feeder.acked) == ["a1 again", "a2"]


def test_a_root_that_failed_elsewhere_is_dropped(run_locally: Any) -> None:
    """A message held in one bolt and failed by another is held no longer after its batch."""
    feeder = FeederSpout("key string, side string, both string")
    builder = ss.TopologyBuilder()
    builder.set_spout("sides", feeder)
    builder.set_bolt("pair", Pair()).fields_grouping("sides", ["key"])
    builder.set_bolt("sink", FailOdd()).shuffle_grouping("sides")
    with run_locally(builder.create_topology()) as play:
        feeder.feed(["a", "1", "!"], msg_id="a1")
        play.settle()
        assert (feeder.failed, held(play.runner)) == (["a1"], 0)


def test_a_raise_puts_back_what_it_took_and_acked(run_topology: Any) -> None:
    """``execute`` that raises fails its own tuple; what it popped and acked is held again."""
    feeder, topology = paired()
    with run_topology(topology, PATIENT) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        play.settle()
        feeder.feed(["a", "bad"], msg_id="bad")
        play.settle()
        assert (feeder.acked, feeder.failed) == ([], ["bad"])
        feeder.feed(["a", "2"], msg_id="a2")
        play.settle()
        assert play.emitted("pair") == [("a", "12")]
        assert sorted(feeder.acked) == ["a1", "a2"]


def test_a_new_driver_drops_what_the_old_one_held() -> None:
    """The source gives the message again, so the copy in the state must not match too."""
    clock, files, seen = ManualClock(), MemoryFiles(), list[Any]()

    def start(topology: ss.Topology) -> LocalRunner:
        return LocalRunner(
            topology,
            clock=clock,
            files=files,
            taps=["pair"],
            on_tap=lambda key, task, rows: seen.extend(tuple(row) for row in rows),
        )

    feeder, topology = paired()
    feeder.feed(["a", "1"], msg_id="a1")
    with start(topology) as first:
        first.run_until_idle()
        assert held(first) == 1
        stores = first._jobs.stores()
    again, topology = paired()
    with start(topology) as second:
        cast("Any", second._jobs)._stores = stores
        again.feed(["a", "1"], msg_id="a1")  # not acked, so it comes again
        second.run_until_idle()
        assert held(second) == 1
        again.feed(["a", "2"], msg_id="a2")
        second.run_until_idle()
        assert seen == [("a", "12")]
        assert (sorted(again.acked), held(second)) == (["a1", "a2"], 0)


def test_a_tuple_in_an_attribute_is_an_error(run_topology: Any) -> None:
    """Kept beyond the batch in an attribute, it could never be acked: the run stops and says so."""
    feeder, topology = paired(Hoard())
    with run_topology(topology, PATIENT) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        with pytest.raises(AttributeStateError, match=r"'kept'.*state\.tuples\(name\)"):
            play.settle()


def test_a_tuple_in_plain_state_is_an_error(run_topology: Any) -> None:
    """``state.put`` refuses a tuple with the way out; the message fails."""
    feeder, topology = paired(HoardInState())
    with run_topology(topology, PATIENT) as play:
        feeder.feed(["a", "1"], msg_id="a1")
        play.settle()
        [failure] = feeder.failures
        assert "state.tuples(name)" in failure.message
