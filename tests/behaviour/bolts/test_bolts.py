"""What bolts may rely on: state, context, concurrency, logs; and what they may not do."""

import asyncio
import logging
import threading
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.errors import AttributeStateError
from sparkstorm.testing import PATIENCE_SECS, FeederSpout


class Ledger(ss.StatefulBolt):
    """Obeys commands on its state and shows all of it."""

    outputs = ("content",)

    def execute(self, tup: ss.Tuple) -> None:
        command, key, value = tup.values
        match command:
            case "put":
                self.state.put(key, value)
            case "delete":
                self.state.delete(key)
            case "put and raise":
                self.state.put(key, value)
                self.state.delete("a")
                raise ValueError("undo this")
            case "change in place":
                self.state.get(key).append(value)
            case "append":
                items = self.state.get(key, [])
                items.append(value)
                self.state.put(key, items)
        self.collector.emit([dict(sorted(self.state.items()))], anchors=tup)
        self.collector.ack(tup)


class Aware(ss.BasicBolt):
    """Tells what its context says, prints, logs and counts."""

    outputs = ("facts",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        context = self.context
        shared = context.shared("sparkstorm-test", lambda: object())
        again = context.shared("sparkstorm-test", lambda: object())
        context.count("seen", 2)
        print("printed", tup["text"])  # noqa: T201 - what is tested
        logging.getLogger("user.code").warning("logged %s", tup["text"])
        collector.report_error("reported")
        collector.emit(
            [
                {
                    "topology": context.topology,
                    "component": context.component,
                    "index": context.task_index,
                    "own task": context.task in context.component_tasks("bolt"),
                    "source": context.component_of(tup.task),
                    "user": context.config.user,
                    "same": shared is again,
                    "fields": tup.fields,
                    "stream": tup.stream,
                    "from": tup.component,
                    "has id": bool(tup.id),
                }
            ]
        )


class Rendezvous(ss.BasicBolt):
    """Ends only if ``PARTIES`` calls are in ``execute`` at the same time."""

    outputs = "n int"
    transient = ("barrier",)
    PARTIES = 4

    def prepare(self, config: ss.Config, context: ss.TaskContext) -> None:
        self.barrier = context.shared(
            "sparkstorm-barrier", lambda: threading.Barrier(self.PARTIES, timeout=PATIENCE_SECS)
        )

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        self.barrier.wait()
        if tup["n"] % 5 == 0:
            raise ValueError(f"not {tup['n']}")
        collector.emit([tup["n"]])


class AsyncRendezvous(ss.Bolt):
    """The same with coroutines."""

    outputs = "n int"
    transient = ("waiting", "all_there")
    PARTIES = 4

    def __init__(self) -> None:
        self.waiting = 0
        self.all_there: asyncio.Event | None = None

    async def execute(self, tup: ss.Tuple) -> None:
        self.waiting += 1
        if self.waiting % self.PARTIES == 1:
            self.all_there = asyncio.Event()
        assert self.all_there is not None
        if self.waiting % self.PARTIES == 0:
            self.all_there.set()
        await asyncio.wait_for(self.all_there.wait(), 20)
        if tup["n"] % 5 == 0:
            raise ValueError(f"not {tup['n']}")
        self.collector.emit([tup["n"]], anchors=tup)
        self.collector.ack(tup)


class AloneAsync(ss.BasicBolt):
    """An async bolt without concurrency."""

    outputs = "n int"

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        await asyncio.sleep(0)
        collector.emit([tup["n"] + 1])


class PooledAsync(ss.BasicBolt):
    """Shares what belongs to the event loop in which it was made, as connection pools do."""

    outputs = "usable boolean"

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        loop = self.context.shared("loop", asyncio.get_running_loop)
        collector.emit([loop is asyncio.get_running_loop()])


class AsyncState(ss.StatefulBolt):
    """Not allowed: state has one writer."""

    async def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class Running(ss.BasicBolt):
    """Keeps a running total, its history and a cache in attributes."""

    outputs = "total long, history string"
    stateful = True
    transient = ("cache",)

    def prepare(self, config: ss.Config, context: ss.TaskContext) -> None:
        """Start from nothing."""
        self.total, self.history, self.lock = 0, list[Any](), threading.Lock()

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Add a number."""
        self.cache = tup["n"]
        self.total += tup["n"]
        self.history.append(tup["n"])
        collector.emit([self.total, str(self.history)])


class Forgetful(ss.BasicBolt):
    """Counts in an attribute although it keeps no state."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        self.seen.append(tup["n"])


class Caching(Forgetful):
    """The same, declared as what may be lost."""

    transient = ("seen",)


def wired(outputs: str | list[str], bolt: Any, **options: Any) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout(outputs)
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", bolt, **options).global_grouping("feeder")
    return feeder, builder.create_topology()


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_state_is_kept_undone_and_copied(run_topology: Any, backend: str) -> None:
    """State survives batches; a raise undoes its writes; a value changed in place stays."""
    feeder, topology = wired(["command", "key", "value"], Ledger())
    with run_topology(topology, {"state_backend": backend}) as play:
        feeder.feed(["put", "a", 1], msg_id=1)
        feeder.feed(["append", "list", "x"], msg_id=2)
        play.settle()
        feeder.feed(["put and raise", "b", 2], msg_id=3)
        feeder.feed(["change in place", "list", "lost"], msg_id=4)
        play.settle()
        feeder.feed(["append", "list", "y"], msg_id=5)
        feeder.feed(["delete", "a", None], msg_id=6)
        play.settle()
        seen = [content for (content,) in play.emitted("bolt")]
        assert seen == [
            {"a": 1},
            {"a": 1, "list": ["x"]},
            {"a": 1, "list": ["x"]},
            {"a": 1, "list": ["x", "y"]},
            {"list": ["x", "y"]},
        ]
        assert feeder.failed == [3]
        assert play.statistics().batches >= 3


def test_context_logs_and_counters(run_topology: Any) -> None:
    """A bolt knows who it is; what it prints, logs, reports and counts arrives with its name."""
    feeder, topology = wired("text string", Aware(), parallelism=2)
    with run_topology(topology, {"user": {"greeting": "hello"}}) as play:
        feeder.feed(["a"], msg_id="a")
        play.settle()
        ((facts,),) = play.emitted("bolt")
        assert facts == {
            "topology": facts["topology"],
            "component": "bolt",
            "index": 0,
            "own task": True,
            "source": "feeder",
            "user": {"greeting": "hello"},
            "same": True,
            "fields": ("text",),
            "stream": "default",
            "from": "feeder",
            "has id": True,
        }
        assert play.texts("bolt") == ["printed a", "logged a", "reported"]
        assert [line.level for line in play.lines] == ["print", "warning", "error"]
        assert dict(play.statistics().component("bolt").user) == {"seen": 2.0}
        assert play.statistics().component("bolt").executed == 1


@pytest.mark.parametrize("bolt", [Rendezvous(), AsyncRendezvous()])
def test_concurrent_bolts_overlap_and_keep_the_order(run_locally: Any, bolt: Any) -> None:
    """Calls of ``execute`` overlap; results come in the input's order, errors per tuple."""
    feeder, topology = wired("n int", bolt, concurrency=bolt.PARTIES)
    with run_locally(topology) as play:
        for number in range(12):
            feeder.feed([number], msg_id=number)
        play.settle()
        fine = [number for number in range(12) if number % 5]
        assert [number for (number,) in play.emitted("bolt")] == fine
        assert (sorted(feeder.acked), sorted(feeder.failed)) == (fine, [0, 5, 10])
        assert [f.message for f in feeder.failures] == [f"ValueError: not {n}" for n in (0, 5, 10)]


@pytest.mark.spark
def test_concurrent_bolts_on_spark(run_on_spark: Any) -> None:
    """Threads of a waiting bolt work in Spark's workers as well."""
    feeder, topology = wired("n int", Rendezvous(), concurrency=Rendezvous.PARTIES)
    with run_on_spark(topology) as play:
        play.set_active(False)
        for number in range(1, 5):
            feeder.feed([number], msg_id=number)
        play.set_active(True)
        play.settle()
        assert len(feeder.acked) + len(feeder.failed) == 4


def test_async_bolt_without_concurrency_is_awaited(run_locally: Any) -> None:
    """``async def execute`` runs to its end also one by one."""
    feeder, topology = wired("n int", AloneAsync())
    with run_locally(topology) as play:
        feeder.feed([1], msg_id=1)
        play.settle()
        assert (play.emitted("bolt"), feeder.acked) == ([(2,)], [1])


def test_async_bolts_of_a_process_have_one_event_loop(run_topology: Any) -> None:
    """In all batches: a connection pool of the first can be used in the second."""
    feeder, topology = wired("n int", PooledAsync())
    with run_topology(topology) as play:
        for number in (1, 2):
            feeder.feed([number], msg_id=number)
            play.settle()
        assert play.emitted("bolt") == [(True,), (True,)]


def test_async_stateful_bolt_is_refused() -> None:
    """State has one writer: an async stateful bolt is a fault of the topology."""
    with pytest.raises(ss.TopologyError, match="execute is async"):
        wired("n int", AsyncState())


def test_changed_attribute_stops_the_topology(run_topology: Any) -> None:
    """A bolt that keeps state in attributes is told so, with their name and the ways out."""
    feeder, topology = wired("n int", Forgetful())
    with run_topology(topology) as play:
        feeder.feed([1], msg_id=1)
        with pytest.raises(AttributeStateError) as caught:
            play.settle()
        for words in ("'bolt'", "Forgetful", "'seen'", "StatefulBolt", "transient = ('seen',)"):
            assert words in str(caught.value)


def test_attributes_of_a_stateful_bolt_are_kept(run_topology: Any) -> None:
    """``stateful = True``: attributes are state; what cannot be pickled is prepared anew."""
    feeder, topology = wired("n int", Running(), parallelism=2)
    with run_topology(topology) as play:
        for number in (1, 2, 3):
            feeder.feed([number], msg_id=number)
            play.settle()
        assert play.emitted("bolt") == [(1, "[1]"), (3, "[1, 2]"), (6, "[1, 2, 3]")]
        assert feeder.acked == [1, 2, 3]


def test_transient_attribute_may_change(run_locally: Any) -> None:
    """An attribute named in ``transient`` may change."""
    feeder, topology = wired("n int", Caching())
    with run_locally(topology) as play:
        feeder.feed([1], msg_id=1)
        play.settle()
        assert feeder.acked == [1]
