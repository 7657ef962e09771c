"""Windows: over by time or count, by the tuples' own time or by that of the batch."""

from datetime import UTC, datetime
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.acking.anchors import MANY_ROOTS
from sparkstorm.bolts import (
    CountWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
    WindowBolt,
)
from sparkstorm.errors import ComponentError, TopologyError
from sparkstorm.testing import FeederSpout

PATIENT = {"message_timeout_secs": 600}


class Total(WindowBolt):
    """Adds up what is in a window; refuses windows with a negative number."""

    key_fields = ("key",)

    def __init__(self, **attributes: Any) -> None:
        self.outputs = {
            "default": "key string, total long, count long",
            "late": ["key", "at", "n"],
        }
        vars(self).update(attributes)

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        total = sum(tup["n"] for tup in window)
        if total < 0:
            raise ValueError("negative")
        collector.emit([window.key[0], total, len(window)])


class Refuse(ss.BasicBolt):
    """Fails totals of 13."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["total"] == 13:
            raise ValueError("unlucky")


def wired(bolt: WindowBolt) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout(("key", "at", "n"))
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feeder)
    builder.set_bolt("total", bolt, parallelism=2).fields_grouping("feed", ["key"])
    builder.set_bolt("refuse", Refuse()).shuffle_grouping("total")
    return feeder, builder.create_topology()


def test_windows_of_time_end_while_nothing_comes(run_topology: Any) -> None:
    """Ticks close them; what was in them is acked only then, and the run drains by itself."""
    feeder, topology = wired(Total(window=TumblingWindow(1.0)))
    with run_topology(topology, PATIENT) as play:
        for n in range(6):
            feeder.feed(["ab"[n % 2], None, n], msg_id=n)
        feeder.end()
        play.pass_time(lambda: len(feeder.acked) == 6)
        totals = play.emitted("total")
        assert sum(total for _, total, _ in totals) == 15
        assert {key for key, _, _ in totals} == {"a", "b"}
        assert play.drain().failed == 0


def test_windows_of_event_time(run_topology: Any) -> None:
    """Out of order within the lag; the end of a window comes with a later timestamp."""
    bolt = Total(window=TumblingWindow(10), timestamp_field="at", lag_secs=5, late_stream="late")
    feeder, topology = wired(bolt)
    with run_topology(topology, PATIENT) as play:
        for n, at in enumerate([1, 12, 3, 14.9]):  # the watermark is 9.9
            feeder.feed(["a", at, n], msg_id=n)
        play.settle()
        assert (play.emitted("total"), feeder.acked) == ([], [])
        feeder.feed(["a", 9, 10], msg_id=10)
        feeder.feed(["a", 15, 11], msg_id=11)
        play.settle()
        assert play.emitted("total") == [("a", 12, 3)]
        assert sorted(feeder.acked) == [0, 2, 10]
        feeder.feed(["a", 9.99, 12], msg_id=12)
        play.settle()
        assert play.emitted("total", "late") == [("a", 9.99, 12)]
        assert sorted(feeder.acked) == [0, 2, 10, 12]


def test_a_result_that_fails_fails_its_window(run_topology: Any) -> None:
    """It is anchored to all that was in it; other windows are not concerned."""
    feeder, topology = wired(Total(window=CountWindow(2)))
    with run_topology(topology, PATIENT) as play:
        for n, key in enumerate("abab"):
            feeder.feed([key, None, 5 + n if key == "a" else 5], msg_id=n)
        feeder.feed(["c", None, 6], msg_id="c1")
        feeder.feed(["c", None, 7], msg_id="c2")
        play.settle()
        assert sorted(play.emitted("total")) == [("a", 12, 2), ("b", 10, 2), ("c", 13, 2)]
        assert sorted(feeder.failed) == ["c1", "c2"]
        assert sorted(feeder.acked) == [0, 1, 2, 3]


class Ranks(WindowBolt):
    """Emits several results of a window."""

    outputs = "key string, total long"
    key_fields = ("key",)
    window = CountWindow(MANY_ROOTS + 1)

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        for rank in range(10, 15):
            collector.emit([window.key[0], rank if window.key[0] == "b" else 0])


def test_a_window_of_many_tuples_stands_or_falls_with_each_of_its_results(
    run_topology: Any,
) -> None:
    """One of five results fails: so do all messages of that window, once; another one's do not."""
    feeder, topology = wired(Ranks())
    with run_topology(topology, PATIENT) as play:
        for number in range(2 * MANY_ROOTS + 2):
            feeder.feed(["ab"[number % 2], 0, number], msg_id=number)
        play.settle()
        assert sorted(feeder.acked) == list(range(0, 2 * MANY_ROOTS + 2, 2))
        assert sorted(feeder.failed) == list(range(1, 2 * MANY_ROOTS + 2, 2))
        assert sorted(play.emitted("total")) == [("a", 0)] * 5 + [("b", n) for n in range(10, 15)]
        assert play.statistics().pending == 0


def test_an_execute_window_that_raises_fails_that_window_alone(run_topology: Any) -> None:
    """Its tuples leave, with the reason; the traceback is shown."""
    feeder, topology = wired(Total(window=TumblingWindow(10), timestamp_field="at"))
    with run_topology(topology, PATIENT) as play:
        for key, n in [("a", 1), ("b", -1), ("a", 2), ("b", -2)]:
            feeder.feed([key, 5, n], msg_id=f"{key}{n}")
        feeder.feed(["a", 10, 0], msg_id="end a")
        feeder.feed(["b", 10, 0], msg_id="end b")
        play.settle()
        assert play.emitted("total") == [("a", 3, 2)]
        assert sorted(feeder.acked) == ["a1", "a2"]
        assert sorted(feeder.failed) == ["b-1", "b-2"]
        assert feeder.failures[0].message == "ValueError: negative"
        assert any("Traceback" in text for text in play.texts("total"))
        assert play.statistics().pending == 2


def test_late_tuples_are_counted_and_reported(run_locally: Any) -> None:
    """Without a stream for them they are acked; nothing is dropped in silence."""
    feeder, topology = wired(Total(window=TumblingWindow(10), timestamp_field="at"))
    with run_locally(topology) as play:
        feeder.feed(["a", 20, 1], msg_id=1)
        play.settle()
        feeder.feed(["a", 9, 2], msg_id=2)
        feeder.feed(["a", 8, 3], msg_id=3)
        statistics = play.settle()
        assert feeder.acked == [2, 3]
        [line] = play.texts("total")
        assert line.startswith("2 tuples came after their windows and were left out")
        counted = [dict(task.user) for task in statistics.components["total"].values()]
        assert sum(user.get("late_tuples", 0) for user in counted) == 2


def test_a_stream_that_brings_nothing_holds_windows_back_unless_it_is_idle(
    run_locally: Any,
) -> None:
    """Of two inputs the lower watermark counts; after ``idle_secs`` only the one that flows."""
    for idle in (None, 5.0):
        one, other = (FeederSpout(("key", "at", "n")) for _ in range(2))
        builder = ss.TopologyBuilder()
        builder.set_spout("one", one)
        builder.set_spout("other", other)
        bolt = Total(window=TumblingWindow(10), timestamp_field="at", idle_secs=idle)
        builder.set_bolt("total", bolt).shuffle_grouping("one").shuffle_grouping("other")
        with run_locally(builder.create_topology()) as play:
            for n in range(7):
                one.feed(["a", 10 * n, n], msg_id=n)
                play.settle()
                play.clock.advance(1.0)
            assert [count for _, _, count in play.emitted("total")] == [1] * (6 if idle else 0)
            if idle is None:
                other.feed(["a", 35, 50], msg_id=50)
                play.settle()
                assert [total for _, total, _ in play.emitted("total")] == [0, 1, 2]


def test_idle_input_closes_all_windows(run_locally: Any) -> None:
    """So that the last windows of a source that ends are not left to time out."""
    bolt = Total(window=SlidingWindow(10, 5), timestamp_field="at", idle_secs=3)
    feeder, topology = wired(bolt)
    with run_locally(topology) as play:
        feeder.feed(["a", 12, 1], msg_id=1)
        feeder.end()
        play.settle()
        play.clock.advance(2.0)
        play.settle()
        assert play.emitted("total") == []
        play.clock.advance(1.0)
        assert play.drain().acked == 1
        assert play.emitted("total") == [("a", 1, 1)] * 2


def test_a_tuple_that_times_out_leaves_its_window(run_locally: Any) -> None:
    """Its message comes again; by then it may be in a later window."""
    feeder, topology = wired(Total(window=CountWindow(2)))
    with run_locally(topology, {"message_timeout_secs": 10}) as play:
        feeder.feed(["a", None, 1], msg_id=1)
        play.settle()
        play.clock.advance(12)
        play.settle()
        assert feeder.failed == [1]
        for n in (2, 3):
            assert play.emitted("total") == []
            feeder.feed(["a", None, n], msg_id=n)
            play.settle()
        assert (play.emitted("total"), feeder.acked) == ([("a", 5, 2)], [2, 3])


def test_timestamps_may_be_datetimes(run_locally: Any) -> None:
    """With a zone or, taken as UTC, without; anything else fails its tuple."""
    feeder, topology = wired(Total(window=SessionWindow(60), timestamp_field="at"))
    with run_locally(topology) as play:
        feeder.feed(["a", datetime(2026, 1, 1, 12, 0, 0), 1], msg_id=1)  # noqa: DTZ001
        feeder.feed(["a", datetime(2026, 1, 1, 12, 0, 59, tzinfo=UTC), 2], msg_id=2)
        feeder.feed(["a", datetime(2026, 1, 1, 13, tzinfo=UTC), 4], msg_id=3)
        feeder.feed(["a", "noon", 8], msg_id=4)
        play.settle()
        assert play.emitted("total") == [("a", 3, 2)]
        assert (sorted(feeder.acked), feeder.failed) == ([1, 2], [4])
        assert "'noon' is not a time" in feeder.failures[0].message
        assert feeder.failures[0].final, "the next try would find the same value"


def test_a_window_longer_than_the_timeout_is_refused(run_locally: Any) -> None:
    """Its tuples would never live to its end."""
    feeder, topology = wired(Total(window=TumblingWindow(60)))
    with run_locally(topology) as play:
        feeder.feed(["a", None, 1], msg_id=1)
        with pytest.raises(ComponentError, match=r"holds tuples for 60 s.*raise message_timeout"):
            play.settle()


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        ({}, "Total.window is None: set it to a TumblingWindow"),
        ({"window": 60}, "Total.window is 60: set it"),
        ({"window": CountWindow(3), "key_fields": "key"}, "key_fields is text"),
        ({"window": CountWindow(3), "timestamp_field": "at"}, "no use for a timestamp_field"),
        ({"window": TumblingWindow(3), "late_stream": "late"}, "nothing is late"),
        ({"window": TumblingWindow(3), "idle_secs": 3}, "no stream is idle"),
        (
            {"window": TumblingWindow(3), "timestamp_field": "at", "late_stream": "x"},
            "has the late_stream 'x': declare it",
        ),
        (
            {"window": TumblingWindow(3), "timestamp_field": "at", "lag_secs": "3"},
            "lag_secs is '3': give 0 or more seconds",
        ),
        (
            {"window": TumblingWindow(3), "timestamp_field": "at", "lag_secs": -3},
            "lag_secs is -3: give 0 or more seconds",
        ),
        (
            {"window": TumblingWindow(3), "timestamp_field": "at", "idle_secs": -1},
            "idle_secs is -1: give 0 or more seconds, or None",
        ),
    ],
)
def test_attributes_that_do_not_fit_are_refused(attributes: dict[str, Any], fault: str) -> None:
    """When the topology is built, in one sentence."""
    with pytest.raises(TopologyError, match=f"^component 'total': .*{fault}"):
        wired(Total(**attributes))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (TumblingWindow, (0,)),
        (TumblingWindow, ("5s",)),
        (TumblingWindow, (float("inf"),)),
        (SlidingWindow, (1, 2)),
        (SlidingWindow, (1, 0)),
        (SessionWindow, (-1,)),
        (SessionWindow, ("30",)),
        (CountWindow, (0,)),
        (CountWindow, (2, 3)),
        (CountWindow, (2, 0)),
    ],
)
def test_windows_that_are_none_are_refused(kind: Any, arguments: tuple[Any, ...]) -> None:
    """Where they are made."""
    with pytest.raises(TopologyError, match=r"Window\(.*: "):
        kind(*arguments)
