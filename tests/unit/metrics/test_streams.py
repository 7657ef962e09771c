"""Metrics of a run: by stream and task, exact, with latencies."""

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.metrics import InputMetrics, OutputMetrics, TaskMetrics
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import LocalRunner, ManualClock


class Sort(ss.BasicBolt):
    """Sends even numbers to one stream and odd ones to another; dislikes 5."""

    def __init__(self) -> None:
        self.outputs = {"even": "n int", "odd": "n int"}

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 5:
            raise ValueError("five")
        collector.emit([tup["n"]], stream="odd" if tup["n"] % 2 else "even")


class Look(ss.Bolt):
    """Looks at numbers; acks each with the one after it, and the last when the batch ends."""

    def prepare(self, config: Any, context: ss.TaskContext, collector: ss.BoltCollector) -> None:
        self.context, self.collector = context, collector
        self.last: ss.Tuple | None = None

    def execute(self, tup: ss.Tuple) -> None:
        self.context.observe("size", tup["n"])
        spin(0.002)
        if self.last is not None:
            self.collector.ack(self.last)
        self.last = tup

    def finish_batch(self) -> None:
        if self.last is not None:
            self.collector.ack(self.last)
            self.last = None


def spin(secs: float) -> None:
    """Keep the processor busy: a sleep may end late."""
    end = time.perf_counter() + secs
    while time.perf_counter() < end:
        pass


def made(clock: ManualClock | None = None, **config: Any) -> LocalRunner:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(10), "n int"))
    builder.set_bolt("sort", Sort(), parallelism=2).shuffle_grouping("numbers")
    looking = builder.set_bolt("look", Look(), parallelism=3)
    looking.all_grouping("sort", "even").shuffle_grouping("sort", "odd")
    config = {"max_retries": 1, "retry_backoff_secs": 0.0, **config}
    return LocalRunner(builder.create_topology(), config=ss.Config(**config), clock=clock)


@pytest.fixture(scope="module")
def statistics() -> Iterator[ss.Statistics]:
    """The statistics of a run to its end."""
    with made() as runner:
        yield runner.run_until_idle()


def test_streams_count_apart(statistics: ss.Statistics) -> None:
    """Five goes wrong twice; each even number is copied to all three tasks."""
    sort, look = statistics.component("sort"), statistics.component("look")
    numbers = sort.inputs["numbers", "default"]
    assert (numbers.executed, numbers.acked, numbers.failed) == (11, 9, 2)
    assert sort.failures == {"error": 2}
    assert sort.outputs == {
        "even": OutputMetrics(emitted=5, transferred=15),
        "odd": OutputMetrics(emitted=4, transferred=4),
    }
    assert (sort.emitted, sort.transferred) == (9, 19)
    assert {name: one.executed for name, one in look.inputs.items()} == {
        ("sort", "even"): 15,
        ("sort", "odd"): 4,
    }
    assert (look.executed, look.acked) == (19, 19)


def test_messages_count_at_their_spout(statistics: ss.Statistics) -> None:
    """Ten numbers, one of them given up after its second try."""
    spout = statistics.component("numbers")
    assert (spout.emitted, spout.transferred, spout.acked, spout.failed) == (11, 11, 9, 2)
    assert spout.failures == {"error": 2}
    assert spout.complete.count == 9
    assert spout.complete.total > 0


def test_ackers_count_too(statistics: ss.Statistics) -> None:
    """So that people see when more of them are needed."""
    acker = statistics.component("__acker")
    assert (acker.acked, acker.failed) == (9, 2)
    assert acker.executed >= 9
    assert acker.process_secs > 0


def test_latencies_are_of_each_call(statistics: ss.Statistics) -> None:
    """A tuple that is acked later has taken longer to process than to execute."""
    look = statistics.component("look")
    assert look.execute.count == look.process.count == 19
    assert look.execute.quantile(0.5) * 1.1 >= 0.002
    assert look.process.total > look.execute.total
    assert statistics.component("sort").execute.count == 11


def test_own_histograms_add_up(statistics: ss.Statistics) -> None:
    """Of all tasks: each even number three times."""
    sizes = statistics.component("look").observed["size"]
    assert (sizes.count, sizes.total) == (19, 3 * (0 + 2 + 4 + 6 + 8) + 1 + 3 + 7 + 9)


@pytest.mark.parametrize(
    ("name", "amount"), [(3, 1.0), ("x", "much"), ("x", -1.0), ("x", math.nan), ("x", math.inf)]
)
def test_own_histograms_refuse_odd_values(name: Any, amount: Any) -> None:
    """As counters do."""
    context = ss.TaskContext(
        topology="t", component="look", task=1, tasks={"look": range(1, 2)}, config=ss.Config()
    )
    with pytest.raises((TypeError, ValueError)):
        context.observe(name, amount)


def test_batches_say_where_their_time_went(statistics: ss.Statistics) -> None:
    """The busiest task of each component, the ackers' too."""
    first = statistics.timings[0]
    assert (first.number, first.messages) == (0, 10)
    assert {*first.busiest} == {"numbers", "sort", "look", "__acker"}
    assert first.busiest["look"] >= 0.002
    assert first.start_secs > 0


def test_windows_forget_but_the_whole_does_not() -> None:
    """Eleven minutes later the ten minutes are empty, the three hours are not."""
    clock = ManualClock()
    with made(clock) as runner:
        runner.run_until_idle()
        clock.advance(660)
        tell = runner.coordinator.window
        assert tell(600).components == {}
        assert tell(10_800).components["look"].executed == 19
        assert tell().components["sort"].failures == {"error": 2}
        assert sum(one.executed for (name, _), one in tell().tasks.items() if name == "look") == 19


def test_without_latencies_counts_stay() -> None:
    """Whoever needs the last percent turns the clock off."""
    with made(stats_latencies=False) as runner:
        look = runner.run_until_idle().component("look")
    assert look.inputs["sort", "odd"] == InputMetrics(executed=4, acked=4)
    assert look.execute.count == 0


class Slow(ss.BasicBolt):
    """Waits, several calls at a time."""

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        spin(0.001)


def test_concurrent_calls_are_timed_one_by_one() -> None:
    """Each from its begin to its end."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(10), "n int"))
    builder.set_bolt("slow", Slow(), concurrency=4).shuffle_grouping("numbers")
    with LocalRunner(builder.create_topology()) as runner:
        slow = runner.run_until_idle().component("slow")
    assert slow.execute.count == 10
    assert slow.execute.total >= 0.01


def test_counts_without_tuples_add_nothing() -> None:
    """The sum keeps what is there."""
    one = TaskMetrics(outputs={"a": OutputMetrics(emitted=1)})
    assert one + TaskMetrics() == one == TaskMetrics() + one
