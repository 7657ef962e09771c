"""What is tracked, what is not, and how long: time-outs, the three ways of turning it off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.packets.packet import Kind, Tracking, read_head
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import FeederSpout


class Ack(ss.Bolt):
    """Only acks."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class AckOdd(ss.Bolt):
    """Acks odd numbers and forgets even ones, as in Storm's testTimeout."""

    def execute(self, tup: ss.Tuple) -> None:
        if tup["n"] % 2:
            self.collector.ack(tup)


class ResetOrForget(ss.Bolt):
    """Forgets everything, but resets the time-out of number 1."""

    outputs = "n int"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["n"] == 1:
            self.collector.reset_timeout(tup)


class Twice(ss.Bolt):
    """Emits two children, anchored or not."""

    outputs = "n int"

    def __init__(self, anchored: bool) -> None:
        self.anchored = anchored

    def execute(self, tup: ss.Tuple) -> None:
        for _ in range(2):
            self.collector.emit([tup["n"]], anchors=tup if self.anchored else None)
        self.collector.ack(tup)


class ShowAttempt(ss.Bolt):
    """Emits which attempt it sees, and fails the first two."""

    outputs = "n int, attempt int"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([tup["n"], tup.attempt], anchors=tup)
        if tup.attempt < 3:
            self.collector.fail(tup, "not yet")
        else:
            self.collector.ack(tup)


def wired(spout: ss.Spout | ss.PartitionedSpout, bolt: ss.Bolt, **options: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spout, **options)
    builder.set_bolt("bolt", bolt, parallelism=2).shuffle_grouping("numbers")
    return builder.create_topology()


def test_timeout(run_locally: Any) -> None:
    """testTimeout: what is never acked stays pending, and fails when its time is up."""
    feeder = FeederSpout("n int")
    with run_locally(wired(feeder, AckOdd()), {"message_timeout_secs": 10}) as play:
        for number in (1, 2, 3):
            feeder.feed([number], msg_id=number)
        play.settle()
        play.clock.advance(9)
        assert play.settle().pending == 1
        assert (sorted(feeder.acked), feeder.failed) == ([1, 3], [])
        play.clock.advance(3)
        statistics = play.settle()
        assert feeder.failed == [2]
        assert feeder.failures[0].reason is ss.Reason.TIMEOUT
        assert (statistics.pending, statistics.failures) == (0, {"timeout": 1})


def test_timeouts_can_be_turned_off(run_locally: Any) -> None:
    """testDisableTupleTimeout: with time-outs off, a tuple stays pending for ever."""
    feeder = FeederSpout("n int")
    with run_locally(wired(feeder, AckOdd()), {"enable_message_timeouts": False}) as play:
        feeder.feed([2], msg_id=2)
        play.settle()
        play.clock.advance(100_000)
        assert play.settle().pending == 1
        assert feeder.failed == []


def test_reset_timeout(run_locally: Any) -> None:
    """A tuple may be reset in the batch that received it; left open, it times out all the same."""
    feeder = FeederSpout("n int")
    config = {"message_timeout_secs": 10}
    with run_locally(wired(feeder, ResetOrForget()), config) as play:
        feeder.feed([1], msg_id=1)
        feeder.feed([2], msg_id=2)
        play.settle()
        play.clock.advance(12)
        play.settle()
        assert sorted(feeder.failed) == [1, 2]


def test_untracked_messages_hear_nothing(run_topology: Any) -> None:
    """A message without an id is processed, but neither acked nor failed; its bolt may raise."""
    feeder = FeederSpout("n int")
    with run_topology(wired(feeder, Twice(anchored=True))) as play:
        feeder.feed([1])
        feeder.feed([2], msg_id=2)
        feeder.feed([3])
        statistics = play.settle()
        assert sorted(play.emitted("bolt")) == [(1,), (1,), (2,), (2,), (3,), (3,)]
        assert (feeder.acked, feeder.failed) == ([2], [])
        assert (statistics.acked, statistics.pending) == (1, 0)


def test_stream_without_subscribers_acks_at_once(run_topology: Any) -> None:
    """A message that nobody subscribes to is complete as soon as its batch is."""
    feeder = FeederSpout({"default": "n int", "unread": "n int"})
    with run_topology(wired(feeder, Ack())) as play:
        feeder.feed([1], msg_id="unread", stream="unread")
        feeder.feed([1], msg_id="read")
        statistics = play.settle()
        assert sorted(feeder.acked) == ["read", "unread"]
        assert statistics.component("bolt").executed == 1


def test_no_ackers_acks_at_the_emit(run_topology: Any) -> None:
    """With topology.acker.executors = 0, ack follows the emit, and failures are not seen."""
    feeder = FeederSpout("n int")
    with run_topology(wired(feeder, AckOdd()), {"acker_executors": 0}) as play:
        feeder.feed([1], msg_id=1)
        feeder.feed([2], msg_id=2)
        statistics = play.settle()
        assert feeder.acked == [1, 2]
        assert (statistics.failed, statistics.pending) == (0, 0)
        assert statistics.component("bolt").executed == 2


class AwayAtFirst(ss.PartitionedSpout):
    """Two splits of two numbers; its source does not answer the first read."""

    outputs = "n int"

    def __init__(self, folder: Path) -> None:
        self.asked = folder / "asked"
        self.acked = folder / "acked"
        self.planned = 0

    def plan(self, limit: int) -> list[ss.Split]:
        if self.planned == 4:
            return []
        self.planned += 2
        return [ss.Split(count=2, data={"first": self.planned - 2})]

    def read(self, split: ss.Split) -> list[tuple[int]]:
        if not self.asked.exists():
            self.asked.touch()
            raise ss.SpoutConnectionError("nobody there")
        first = split.data["first"]
        return [(first,), (first + 1,)]

    def ack(self, split: ss.Split, positions: Any) -> None:
        with self.acked.open("a") as file:
            file.write(f"{split.data['first']} ")

    def exhausted(self) -> bool:
        return self.planned == 4


def test_what_was_not_read_is_not_acked_without_ackers(run_locally: Any, tmp_path: Path) -> None:
    """The job fails instead, and the batch is run again when it is asked for."""
    spout = AwayAtFirst(tmp_path)
    with run_locally(wired(spout, Ack()), {"acker_executors": 0}) as play:
        with pytest.raises(ss.SpoutConnectionError, match="nobody there"):
            play.settle()
        assert not spout.acked.exists()
        play.drain()
        assert sorted(play.emitted("numbers")) == [(0,), (1,), (2,), (3,)]
        assert spout.acked.read_text().split() == ["0", "2"]


@pytest.mark.spark
def test_the_query_is_restarted_if_an_untracked_source_is_away(
    run_on_spark: Any, tmp_path: Path
) -> None:
    """As for any other failure that is no message's fault; nothing is lost meanwhile."""
    spout = AwayAtFirst(tmp_path)
    config = {"acker_executors": 0, "query_restart_backoff_secs": 0.1}
    with run_on_spark(wired(spout, Ack()), config) as play:
        play.drain()
        assert sorted(play.emitted("numbers")) == [(0,), (1,), (2,), (3,)]
        assert spout.acked.read_text().split() == ["0", "2"]


def packets_of(play: Any, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every packet that moves between stages from now on."""
    seen: list[bytes] = []
    run_stage: Callable[..., dict[int, list[bytes]]] = play.runner._jobs._run_stage

    def watched(*args: Any) -> dict[int, list[bytes]]:
        moved = run_stage(*args)
        seen.extend(data for box in moved.values() for data in box)
        return moved

    monkeypatch.setattr(type(play.runner._jobs), "_run_stage", lambda _, *args: watched(*args))
    return seen


def deep(anchored: bool) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout("n int")
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", feeder)
    builder.set_bolt("twice", Twice(anchored)).shuffle_grouping("numbers")
    builder.set_bolt("ack", Ack(), parallelism=2).shuffle_grouping("twice")
    return feeder, builder.create_topology()


@pytest.mark.parametrize("way", ["no ackers", "no msg_id", "no anchors", "tracked"])
def test_untracked_tuples_carry_no_ids(
    run_locally: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Each way of turning tracking off leaves no ids in packets and makes no ack rows."""
    feeder, topology = deep(anchored=way != "no anchors")
    config = {"acker_executors": 0 if way == "no ackers" else 2}
    with run_locally(topology, config) as play:
        packets = packets_of(play, monkeypatch)
        for number in range(10):
            feeder.feed([number], msg_id=None if way == "no msg_id" else number)
        play.settle()
        component_of = play.runner.plan.stream_keys
        distinct = map(read_head, set(packets))  # some pass through several stages
        heads = [(component_of[head.stream].component, head) for head in distinct]
        carried = {(c, h.tracking) for c, h in heads if h.kind is Kind.DATA and h.target}
        rows = [h for _, h in heads if h.kind in (Kind.ENTRIES, Kind.HOLD, Kind.NOTES)]
        tracked = {component for component, tracking in carried if tracking is not Tracking.NONE}
        assert (
            tracked
            == {
                "no ackers": set(),
                "no msg_id": set(),
                "no anchors": {"numbers"},
                "tracked": {"numbers", "twice"},
            }[way]
        )
        if way in ("no ackers", "no msg_id"):
            assert rows == []
        if way == "no anchors":
            assert sum(head.count for head in rows) == 10  # the roots' own, none of the children


def test_attempts_grow(run_topology: Any) -> None:
    """A bolt sees which attempt at a message a tuple belongs to."""
    spout = IteratorSpout([(7,), (8,)], "n int")
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("bolt", ShowAttempt()).shuffle_grouping("numbers")
    with run_topology(builder.create_topology(), {"retry_backoff_secs": 0}) as play:
        statistics = play.drain()
        assert sorted(play.emitted("bolt")) == [
            (n, attempt) for n in (7, 8) for attempt in (1, 2, 3)
        ]
        assert (statistics.acked, statistics.failed, statistics.given_up) == (2, 4, 0)


def test_verdicts_reach_the_emitting_task(run_topology: Any) -> None:
    """With several tasks of a spout, each hears of its own messages only."""
    feeder = FeederSpout("n int")
    with run_topology(wired(feeder, AckOdd(), parallelism=3), {"message_timeout_secs": 1}) as play:
        for number in range(1, 60, 2):
            feeder.feed([number], msg_id=number)
        play.settle()
        assert sorted(feeder.acked) == list(range(1, 60, 2))
        assert feeder.misdirected == []


def test_open_trees_keep_nothing_out(run_locally: Any) -> None:
    """What a bolt leaves open bounds new messages by max_spout_pending only, not by batches."""
    feeder = FeederSpout("n int")
    with run_locally(wired(feeder, AckOdd()), {"batch_max_messages": 1}) as play:
        for number in (2, 4, 6, 8, 9):
            feeder.feed([number], msg_id=number)
        play.settle()
        assert play.statistics().pending == 4
        assert feeder.acked == [9]


def test_max_spout_pending_holds(run_locally: Any) -> None:
    """A spout task is not asked for more while it has as many pending as it may."""
    feeder = FeederSpout("n int")
    config = {"max_spout_pending": 4, "message_timeout_secs": 10}
    with run_locally(wired(feeder, AckOdd()), config) as play:
        for number in range(0, 20, 2):  # none of them is ever acked
            feeder.feed([number], msg_id=number)
        assert play.settle().pending == 4
        assert play.statistics().emitted == 4
        play.clock.advance(12)
        play.settle()
        assert len(feeder.failed) == 4
        assert play.statistics().pending == 4
        assert play.statistics().emitted == 8
