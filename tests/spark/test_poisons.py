"""Messages that end the process that works on them, or never let it go: found, and only they."""

import ctypes
import logging
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.spouts import IteratorSpout
from sparkstorm.tasks.report import LINES
from sparkstorm.testing import PATIENCE_SECS

pytestmark = pytest.mark.spark


def harm(how: str) -> None:
    """End this process, or never return."""
    match how:
        case "exit":
            os._exit(7)
        case "segfault":
            ctypes.string_at(0)
        case "loop":
            while True:
                pass


class Harmed(ss.BasicBolt):
    """Passes numbers on; some do harm."""

    outputs = "n int"

    def __init__(self, poisons: frozenset[int], how: str) -> None:
        self.poisons = poisons
        self.how = how

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] in self.poisons:
            harm(self.how)
        collector.emit([tup["n"]])


class HarmedSlowly(Harmed):
    """The same as a coroutine."""

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:  # type: ignore[override]
        super().execute(tup, collector)


class HarmedCount(ss.StatefulBolt):
    """Counts numbers in state; some do harm."""

    outputs = "n int, count long"

    def __init__(self, poisons: frozenset[int] = frozenset(), how: str = "") -> None:
        self.poisons = poisons
        self.how = how

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["n"], 0) + 1
        self.state.put(tup["n"], count)
        if tup["n"] in self.poisons:
            harm(self.how)
        self.collector.emit([tup["n"], count], anchors=tup)
        self.collector.ack(tup)


class HarmedOnce(Harmed):
    """Ends its process at each poison, but only as long as a file is not there; makes the file."""

    outputs = "n int"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        marker = Path(self.how)
        if tup["n"] in self.poisons and not marker.exists():
            marker.touch()
            os._exit(7)
        collector.emit([tup["n"]])


class HeldCount(ss.StatefulBolt):
    """Holds each number beyond its batch while it goes on; in the next one it tells how many."""

    outputs = "n int, count long"

    def execute(self, tup: ss.Tuple) -> None:
        if not tup.is_tick:
            self.state.tuples("held").add(self.context.batch, tup)
            self.collector.emit([tup["n"], 0], anchors=tup)

    def finish_batch(self) -> None:
        held = self.state.tuples("held")
        before = [
            tup for key in sorted(held.keys()) if key < self.context.batch for tup in held.get(key)
        ]
        for tup in before:
            self.collector.emit([tup["n"], len(before)])
            self.collector.ack(tup)


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the bolts of this module to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def wired(spout: Any, bolt: Any, concurrency: int = 1, counting: bool = True) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("bolt", bolt, 2, concurrency=concurrency).shuffle_grouping("spout")
    if counting:
        builder.set_bolt("count", HarmedCount(), 2).fields_grouping("bolt", ["n"])
    return builder.create_topology()


def counted_first(spout: Any, bolt: Any) -> ss.Topology:
    """The counts' stage is done, and its state written, before any harm is done."""
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("count", HarmedCount(), 2).fields_grouping("spout", ["n"])
    builder.set_bolt("bolt", bolt, 2).shuffle_grouping("count")
    return builder.create_topology()


class _Texts(logging.Handler):
    """Collects the lines that components log."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line of a component."""
        self.texts.append(record.__dict__["line"].text)


def run_all(
    topology: ss.Topology, session: Any, patience: float = PATIENCE_SECS, **config: Any
) -> tuple[ss.Statistics, list[Any], list[str]]:
    """Run to the end; return the statistics, what ``count`` emitted, and the lines logged."""
    seen: list[Any] = []
    lines = _Texts()
    logging.getLogger(LINES).addHandler(lines)
    settings = {"batch_min_messages": 10_000, "max_retries": 3, "retry_backoff_secs": 0.01}
    run = ss.submit(
        topology,
        name="test",
        session=session,
        config={**settings, **config},
        taps=["count"],
        on_tap=lambda key, task, rows: seen.extend(rows),
    )
    try:
        assert run.wait_until_drained(patience), run
        return run.statistics(), seen, lines.texts
    finally:
        logging.getLogger(LINES).removeHandler(lines)
        run.stop(drain=False)


def actions(caplog: pytest.LogCaptureFixture) -> int:
    """How many actions the searches took beside the first ones, as people are told."""
    return sum(int(n) for n in re.findall(r"after (\d+) more actions", caplog.text))


def check(
    statistics: ss.Statistics, seen: list[Any], messages: int, poisons: frozenset[int]
) -> None:
    """All but the poisons went through, counted once, in one batch; the poisons were given up."""
    assert (statistics.acked, statistics.pending) == (messages - len(poisons), 0)
    assert (statistics.given_up, statistics.retried) == (len(poisons), 0)
    assert statistics.failures == ({"lost": len(poisons)} if poisons else {})
    assert statistics.batches == 1
    assert Counter(n for n, _ in seen) == Counter(set(range(messages)) - poisons)
    assert {count for _, count in seen} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exit", "segfault"])
def test_poison_is_found_in_its_batch(
    spark: Any, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A message that ends its process is given up; all others go through in the same batch."""
    poisons = frozenset({37})
    topology = wired(IteratorSpout(range(64), "n int"), Harmed(poisons, how))
    statistics, seen, _ = run_all(topology, spark)
    check(statistics, seen, 64, poisons)
    assert actions(caplog) <= 2 + 6 + 4


def test_process_that_dies_once_costs_nothing_but_a_repetition(spark: Any, tmp_path: Path) -> None:
    """Spark tries the task again; nobody is suspected."""
    bolt = HarmedOnce(frozenset({3}), str(tmp_path / "died"))
    statistics, seen, _ = run_all(wired(IteratorSpout(range(8), "n int"), bolt), spark)
    check(statistics, seen, 8, frozenset())


@pytest.mark.slow
def test_poison_in_a_stateful_bolt_leaves_the_counts_exact(spark: Any) -> None:
    """State that an attempt or a probe wrote before it failed is not there afterwards."""
    poisons = frozenset({5})
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", IteratorSpout(range(32), "n int"))
    count = builder.set_bolt("count", HarmedCount(poisons, "exit"), 2)
    count.fields_grouping("spout", ["n"])
    statistics, seen, _ = run_all(builder.create_topology(), spark)
    check(statistics, seen, 32, poisons)


def test_counts_that_were_written_before_the_harm_are_exact(spark: Any) -> None:
    """Messages that were counted when a batch failed are counted once, as later batches see."""
    numbers = [*range(12), *range(5), 100, *range(5, 12), *range(12)]
    topology = counted_first(IteratorSpout(numbers, "n int"), Harmed(frozenset({100}), "exit"))
    statistics, seen, lines = run_all(topology, spark, batch_min_messages=13, batch_max_messages=13)
    assert (statistics.acked, statistics.given_up) == (36, 1)
    assert statistics.batches > 2
    executed = [statistics.component(name).executed for name in ("count", "bolt")]
    assert executed == [37, 36], "what is not run again when the job is, counts all the same"
    assert any("it ended every process" in line for line in lines)
    assert sorted(pair for pair in seen if pair[0] != 100) == [
        (number, count) for number in range(12) for count in (1, 2, 3)
    ]


@pytest.mark.slow
def test_poison_that_a_finished_stage_holds_is_found_once(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is given up with its batch, long before it times out, and dropped where it is held."""
    caplog.set_level(logging.WARNING)
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", IteratorSpout(range(6), "n int"))
    count = builder.set_bolt("count", HeldCount()).shuffle_grouping("spout")
    count.add_configuration("tick_tuple_freq_secs", 0.2)
    builder.set_bolt("bolt", Harmed(frozenset({2}), "exit")).shuffle_grouping("count")
    statistics, seen, _ = run_all(
        builder.create_topology(), spark, message_timeout_secs=PATIENCE_SECS
    )
    assert (statistics.acked, statistics.given_up, statistics.pending) == (5, 1, 0)
    assert (statistics.failures, statistics.retried) == ({"lost": 1}, 0)
    assert sorted(pair for pair in seen if pair[1]) == [(n, 5) for n in (0, 1, 3, 4, 5)]
    assert caplog.text.count("the job of its") == 1


@pytest.mark.slow
@pytest.mark.parametrize("bolt", [Harmed, HarmedSlowly], ids=["threads", "coroutines"])
def test_poison_of_a_concurrent_bolt_is_found(spark: Any, bolt: type[Harmed]) -> None:
    """With several messages at work at once, it is still the one that is to blame."""
    poisons = frozenset({9})
    topology = wired(IteratorSpout(range(16), "n int"), bolt(poisons, "exit"), concurrency=4)
    statistics, seen, _ = run_all(topology, spark)
    check(statistics, seen, 16, poisons)


@pytest.mark.slow
def test_hung_message_is_found(spark: Any) -> None:
    """A message that loops for ever is given up after a trial with the whole time-out."""
    poisons = frozenset({2})
    topology = wired(IteratorSpout(range(4), "n int"), Harmed(poisons, "loop"))
    statistics, seen, lines = run_all(topology, spark, batch_timeout_secs=8)
    check(statistics, seen, 4, poisons)
    assert any("ran over the batch time-out of 8 s" in line for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(4000)
@pytest.mark.parametrize(
    "poisons", [frozenset({7345}), frozenset({17, 2345, 2346, 7001, 9999})], ids=["1", "5"]
)
@pytest.mark.parametrize("how", ["exit", "segfault", "loop"])
def test_poisons_among_ten_thousand(
    spark: Any, how: str, poisons: frozenset[int], caplog: pytest.LogCaptureFixture
) -> None:
    """About log2 n actions each, in one batch, and all others go through in it."""
    caplog.set_level(logging.WARNING)
    topology = wired(IteratorSpout(range(10_000), "n int"), Harmed(poisons, how))
    statistics, seen, _ = run_all(topology, spark, patience=3600, batch_timeout_secs=10)
    check(statistics, seen, 10_000, poisons)
    assert actions(caplog) <= 2 + len(poisons) * (math.ceil(math.log2(10_000)) + 4)
