"""``complete_topology``: every message has ended when it returns, whatever the time this takes."""

from collections.abc import Sequence
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.bolts import JoinBolt, SlidingWindow, TumblingWindow, Window, WindowBolt
from sparkstorm.clock import SystemClock
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import ManualClock, complete_topology

ROWS = [["a", 1], ["b", 2], ["a", 3]]


class Total(WindowBolt):
    """Adds up each window."""

    outputs = "key string, total long"
    key_fields = ("key",)

    def __init__(self, window: Any) -> None:
        self.window = window

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        collector.emit([window.key[0], sum(tup["n"] for tup in window)])


class Bears(ss.BasicBolt):
    """Fails each tuple up to an attempt."""

    outputs = "key string, attempt long"

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup.attempt < self.attempt:
            raise TimeoutError("busy")
        collector.emit([tup["key"], tup.attempt])


class Forgetful(ss.Bolt):
    """Neither acks nor fails."""

    def execute(self, tup: ss.Tuple) -> None:
        pass


def wired(bolt: Any, rows: Sequence[Any] = ROWS) -> ss.Topology:
    """Build a topology of rows and a bolt."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", IteratorSpout(rows, "key string, n long"))
    builder.set_bolt("bolt", bolt, parallelism=2).fields_grouping("rows", "key")
    return builder.create_topology()


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("secs", [0.1, 5, 29, 29.7])
def test_windows_by_time_are_closed(partitions: int, secs: float) -> None:
    """Also those that end shortly before their tuples would time out."""
    done = complete_topology(wired(Total(TumblingWindow(secs))), partitions=partitions)
    assert sorted(done.values("bolt")) == [("a", 4), ("b", 2)]
    assert (done.statistics.acked, done.statistics.failed, done.statistics.pending) == (3, 0, 0)


def test_a_tuple_is_in_each_of_its_sliding_windows() -> None:
    """The clock makes no leap over a window."""
    done = complete_topology(wired(Total(SlidingWindow(10, 2)), ROWS[:1]))
    assert done.values("bolt") == [("a", 1)] * 5


def test_windows_of_a_day_are_closed() -> None:
    """If tuples may wait for so long."""
    config = ss.Config(enable_message_timeouts=False)
    done = complete_topology(wired(Total(TumblingWindow(86_400))), config=config)
    assert sorted(done.values("bolt")) == [("a", 4), ("b", 2)]


def test_rows_in_the_place_of_a_spout_get_their_windows_too() -> None:
    """A mocked source is as good as its spout."""
    topology = wired(Total(TumblingWindow(5)), [])
    done = complete_topology(topology, mock_sources={"rows": ROWS})
    assert sorted(done.values("bolt")) == [("a", 4), ("b", 2)]


def test_failed_messages_are_tried_again_until_they_are_acked() -> None:
    """By the pauses of the default settings."""
    done = complete_topology(wired(Bears(6)))
    assert sorted(done.values("bolt")) == [("a", 6), ("a", 6), ("b", 6)]
    assert (done.statistics.acked, done.statistics.failed) == (3, 15)


def test_messages_that_fail_always_are_given_up() -> None:
    """That is half an hour by the clock, and no time here."""
    done = complete_topology(wired(Bears(99)))
    assert (done.statistics.given_up, done.statistics.pending) == (3, 0)
    assert done.statistics.failures == {"error": 3 * 17}


def test_messages_that_nobody_acks_time_out() -> None:
    """As they would on Spark."""
    done = complete_topology(wired(Forgetful()), config=ss.Config(max_retries=2))
    assert done.statistics.failures == {"timeout": 9}
    assert (done.statistics.given_up, done.statistics.pending) == (3, 0)


def test_messages_that_nothing_can_end_stay_pending() -> None:
    """A test without time-outs ends all the same."""
    config = ss.Config(enable_message_timeouts=False)
    assert complete_topology(wired(Forgetful()), config=config).statistics.pending == 3


def test_a_join_waits_for_what_is_missing() -> None:
    """The result without it comes when its time is over."""
    builder = ss.TopologyBuilder()
    builder.set_spout("left", IteratorSpout([["a", 1], ["b", 2]], "key string, n long"))
    builder.set_spout("right", IteratorSpout([["a", 9]], "key string, m long"))
    join = JoinBolt("left", "key").left_join("right", "key", wait_secs=7).select("key, n, m")
    bolt = builder.set_bolt("join", join, parallelism=2)
    bolt.fields_grouping("left", "key").fields_grouping("right", "key")
    done = complete_topology(builder.create_topology())
    assert sorted(done.values("join"), key=str) == [("a", 1, 9), ("b", 2, None)]


def test_time_stands_still_where_nothing_waits() -> None:
    """A clock of the test's own is as it was."""
    clock = ManualClock()
    complete_topology(wired(Bears(1)), clock=clock)
    assert clock.monotonic() == 0
    complete_topology(wired(Bears(2)), clock=clock)
    assert 0.25 <= clock.monotonic() <= 2


def test_a_real_clock_is_waited_for() -> None:
    """It cannot be moved."""
    config = ss.Config(retry_backoff_secs=0.05)
    done = complete_topology(wired(Bears(2)), config=config, clock=SystemClock())
    assert (done.statistics.acked, done.statistics.failed) == (3, 3)


def test_a_topology_without_ackers_has_nothing_to_wait_for() -> None:
    """Its messages are done when they are emitted."""
    done = complete_topology(wired(Bears(1)), config=ss.Config(acker_executors=0))
    assert sorted(key for key, _ in done.values("bolt")) == ["a", "a", "b"]


class Counts(ss.StatefulBolt):
    """Counts keys in its state."""

    outputs = "key string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.add(tup["key"])
        self.collector.emit([tup["key"], count], anchors=tup)
        self.collector.ack(tup)


def test_counts_over_scattered_keys_get_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """As a run on Spark gives it: a test shows such counts first."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", IteratorSpout(ROWS, "key string, n long"))
    builder.set_bolt("counts", Counts(), parallelism=2).shuffle_grouping("rows")
    complete_topology(builder.create_topology())
    assert "use fields_grouping" in caplog.text
