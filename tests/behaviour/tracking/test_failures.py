"""One tree fails, the others go on: under both runners."""

import asyncio
import sys
import threading
from types import MappingProxyType
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import FeederSpout


class Passing(ss.BasicBolt):
    """Passes on what it gets, twice; raises after the first on demand."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["text"]])
        if tup["text"] == "raise":
            raise ValueError("cannot bear it")
        collector.emit([tup["text"]])


class KeepingEmits(ss.Bolt):
    """The same as a bolt that acks by itself."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([tup["text"]], anchors=tup)
        if tup["text"] == "raise":
            raise ValueError("cannot bear it")
        if tup["text"] == "fail":
            self.collector.fail(tup, "the database said no")
            return
        self.collector.emit([tup["text"]], anchors=tup)
        self.collector.ack(tup)


class Ack(ss.Bolt):
    """Only acks."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class JoinAll(ss.Bolt):
    """Emits one tuple anchored to all the batch's input, in finish_batch."""

    outputs = "text string"

    def __init__(self) -> None:
        self.held: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        self.held.append(tup)

    def finish_batch(self) -> None:
        self.collector.emit([",".join(t["text"] for t in self.held)], anchors=self.held)
        for tup in self.held:
            self.collector.ack(tup)
        self.held = []


class FailAll(ss.Bolt):
    """Fails everything."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.fail(tup, "not this one")


class Unanchored(ss.Bolt):
    """Emits without anchors."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([tup["text"]])
        self.collector.ack(tup)


class Misuse(ss.Bolt):
    """Breaks a rule of tracking, the one that the tuple names."""

    outputs = "text string"
    transient = ("earlier",)
    earlier: ss.Tuple | None = None

    def execute(self, tup: ss.Tuple) -> None:
        match tup["text"]:
            case "ack twice":
                self.collector.ack(tup)
                self.collector.ack(tup)
            case "fail after ack":
                self.collector.ack(tup)
                self.collector.fail(tup)
            case "ack after fail":
                self.collector.fail(tup)
                self.collector.ack(tup)
            case "anchor after ack":
                self.collector.ack(tup)
                self.collector.emit(["child"], anchors=tup)
            case "anchor to text":
                self.collector.emit(["child"], anchors="text")  # type: ignore[arg-type]
            case "keep":
                self.earlier = tup
                self.collector.ack(tup)
            case "foreign":
                assert self.earlier is not None
                self.collector.ack(self.earlier)
            case _:
                self.collector.ack(tup)


class Misfit(ss.Bolt):
    """Emits what does not fit, as the tuple says."""

    outputs = MappingProxyType(
        {
            "default": "word string, n long",
            "named": ["anything"],
            "direct": ss.Stream("word string", direct=True),
            "grouped": ["key"],
        }
    )

    def execute(self, tup: ss.Tuple) -> None:
        emit = self.collector.emit
        match tup["text"]:
            case "arity":
                emit(["one"], anchors=tup)
            case "type":
                emit(["word", "not a number"], anchors=tup)
            case "stream":
                emit(["word"], anchors=tup, stream="nowhere")
            case "direct by emit":
                emit(["word"], anchors=tup, stream="direct")
            case "emit by direct":
                self.collector.emit_direct(1, ["word", 1], anchors=tup)
            case "unhashable":
                emit([{"a": 1}], anchors=tup, stream="grouped")
            case "unpicklable":
                emit([threading.Lock()], anchors=tup, stream="named")
            case _:
                emit(["word", 1], anchors=tup)
        self.collector.ack(tup)


class BasicMisfit(ss.BasicBolt):
    """Emits to two streams what does not fit one of them, as the tuple says."""

    outputs = MappingProxyType({"default": "n long", "named": ["anything"]})

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([1], stream="".join(("def", "ault")))  # equal, and not the same object
        collector.emit(["text" if tup["text"] == "type" else 2])
        value = threading.Lock() if tup["text"] == "unpicklable" else tup["text"]
        collector.emit([value], stream="named")


class AckAny(ss.Bolt):
    """Acks everything of any stream."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


def one_bolt(bolt: ss.Bolt | ss.BasicBolt, **options: Any) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", bolt, **options).shuffle_grouping("feeder")
    builder.set_bolt("sink", Ack()).shuffle_grouping("bolt")
    return feeder, builder.create_topology()


def reasons(feeder: FeederSpout) -> dict[Any, ss.Failure]:
    return dict(zip(feeder.failed, feeder.failures, strict=True))


def test_exception_fails_one_tuple_of_a_basic_bolt_and_drops_its_emits(run_topology: Any) -> None:
    """A basic bolt that raises fails that message with the traceback; its emits are gone."""
    feeder, topology = one_bolt(Passing())
    with run_topology(topology) as play:
        for text in ("good", "raise", "fine"):
            feeder.feed([text], msg_id=text)
        play.settle()
        assert sorted(feeder.acked) == ["fine", "good"]
        assert feeder.failed == ["raise"]
        assert sorted(play.emitted("bolt")) == [("fine",), ("fine",), ("good",), ("good",)]
        failure = feeder.failures[0]
        assert (failure.reason, failure.component) == (ss.Reason.ERROR, "bolt")
        assert failure.message == "ValueError: cannot bear it"
        assert 'raise ValueError("cannot bear it")' in failure.traceback


class Wordless(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd(ss.BasicBolt):
    """Ends in odd ways, as the text says; also as one that waits, with ``concurrency``."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> Any:
        match tup["text"]:
            case "wordless":
                raise Wordless
            case "exit":
                sys.exit(3)
            case "cancelled":
                raise asyncio.CancelledError("the connection is closing")
            case "coroutine":
                return self.later(tup, collector)
            case "stderr":
                sys.stderr.write("careful\n")
            case "result":
                return [tup["text"]]
        collector.emit([tup["text"]])
        return None

    async def later(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["text"]])


ODD = {
    "wordless": "Wordless: <exception str() failed>",
    "exit": "SystemExit: 3",
    "cancelled": "CancelledError: the connection is closing",
    "result": "execute returned ['result'], which nobody uses: emit with the collector instead of",
    "coroutine": "execute returned a coroutine, which nobody awaits: declare execute itself with",
}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_odd_ends_of_execute_fail_one_tuple(run_topology: Any, concurrency: int) -> None:
    """No process ends, and no work is left undone without a word."""
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", Odd(), concurrency=concurrency).shuffle_grouping("feeder")
    builder.set_bolt("sink", Ack()).shuffle_grouping("bolt")
    with run_topology(builder.create_topology()) as play:
        for text in (*ODD, "fine", "stderr"):
            feeder.feed([text], msg_id=text)
        play.settle()
        assert sorted(feeder.acked) == ["fine", "stderr"]
        found = reasons(feeder)
        assert sorted(found) == sorted(ODD)
        for text, words in ODD.items():
            assert words in found[text].message
        assert play.emitted("bolt") == [("fine",), ("stderr",)]
        assert play.texts("bolt").count("careful") == 1


def test_exception_and_fail_keep_the_emits_of_a_bolt(run_topology: Any) -> None:
    """A bolt keeps what it emitted before it raised or failed, as in Storm; one failure each."""
    feeder, topology = one_bolt(KeepingEmits())
    with run_topology(topology) as play:
        for text in ("good", "raise", "fail"):
            feeder.feed([text], msg_id=text)
        play.settle()
        emitted = sorted(play.emitted("bolt"))
        assert emitted == [("fail",), ("good",), ("good",), ("raise",)]
        assert feeder.acked == ["good"]
        assert sorted(feeder.failed) == ["fail", "raise"]
        failed = reasons(feeder)["fail"]
        assert (failed.reason, failed.message) == (ss.Reason.FAILED, "the database said no")
        assert failed.task in play.statistics().components["bolt"]


@pytest.mark.parametrize("concurrency", [2])
def test_exceptions_of_concurrent_bolts_do_the_same(run_locally: Any, concurrency: int) -> None:
    """What a bolt does when it raises does not depend on its concurrency."""
    feeder, topology = one_bolt(KeepingEmits(), concurrency=concurrency)
    other, basic = one_bolt(Passing(), concurrency=concurrency)
    for fed, made, kept in ((feeder, topology, 1), (other, basic, 0)):
        with run_locally(made) as play:
            for text in ("good", "raise"):
                fed.feed([text], msg_id=text)
            play.settle()
            assert (fed.acked, fed.failed) == (["good"], ["raise"])
            assert play.emitted("bolt").count(("raise",)) == kept
            assert "cannot bear it" in fed.failures[0].traceback


def test_multi_anchored_failure_fails_all_its_roots(run_topology: Any) -> None:
    """A tuple anchored to several messages that fails, fails each of them once."""
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("join", JoinAll()).shuffle_grouping("feeder")
    builder.set_bolt("fail", FailAll()).shuffle_grouping("join")
    with run_topology(builder.create_topology()) as play:
        for text in ("a", "b", "c"):
            feeder.feed([text], msg_id=text)
        play.settle()
        assert sorted(feeder.failed) == ["a", "b", "c"]
        assert feeder.acked == []
        assert {failure.component for failure in feeder.failures} == {"fail"}


def test_unanchored_tuples_fail_nobody(run_topology: Any) -> None:
    """The failure of a tuple that was emitted without anchors replays nothing."""
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("loose", Unanchored()).shuffle_grouping("feeder")
    builder.set_bolt("fail", FailAll()).shuffle_grouping("loose")
    with run_topology(builder.create_topology()) as play:
        feeder.feed(["a"], msg_id="a")
        play.settle()
        assert (feeder.acked, feeder.failed) == (["a"], [])
        assert play.statistics().component("fail").failed == 1


MISUSES = {
    "ack twice": "already acked",
    "fail after ack": "already acked",
    "ack after fail": "already failed",
    "anchor after ack": "already acked",
    "anchor to text": "are tuples, not 'text'",
}


def test_misuse_of_tracking_is_a_failure_that_names_the_component(run_topology: Any) -> None:
    """A second ack or fail, and anchors that are no open tuples fail at once, with names."""
    feeder, topology = one_bolt(Misuse())
    with run_topology(topology) as play:
        for text in (*MISUSES, "good"):
            feeder.feed([text], msg_id=text)
        play.settle()
        assert feeder.acked == ["good"]
        found = reasons(feeder)
        assert sorted(found) == sorted(MISUSES)
        for text, words in MISUSES.items():
            assert words in found[text].message
            assert "'bolt'" in found[text].message
            assert found[text].component == "bolt"


def test_tuple_of_an_earlier_batch_cannot_be_acked(run_locally: Any) -> None:
    """A tuple that this task did not receive in this batch is refused, with what to do."""
    feeder, topology = one_bolt(Misuse())
    with run_locally(topology) as play:
        feeder.feed(["keep"], msg_id="keep")
        play.settle()
        feeder.feed(["foreign"], msg_id="foreign")
        play.settle()
        assert (feeder.acked, feeder.failed) == (["keep"], ["foreign"])
        assert "did not receive in this batch" in feeder.failures[0].message
        assert "finish_batch" in feeder.failures[0].message


MISFITS = {
    "arity": "bolt/default",
    "type": "bolt/default",
    "stream": "'nowhere'",
    "direct by emit": "bolt/direct",
    "emit by direct": "bolt/default",
    "unhashable": "bolt/grouped",
    "unpicklable": "bolt/named",
}


def test_emits_that_do_not_fit_are_failures_that_name_the_stream(run_topology: Any) -> None:
    """Wrong arity, type, stream, way of emitting, key or value fail the input, with names."""
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", Misfit()).shuffle_grouping("feeder")
    declarer = builder.set_bolt("sink", AckAny(), parallelism=2)
    declarer.shuffle_grouping("bolt").shuffle_grouping("bolt", "named")
    declarer.direct_grouping("bolt", "direct").fields_grouping("bolt", ["key"], "grouped")
    with run_topology(builder.create_topology()) as play:
        for text in (*MISFITS, "good"):
            feeder.feed([text], msg_id=text)
        play.settle()
        assert feeder.acked == ["good"]
        found = reasons(feeder)
        assert sorted(found) == sorted(MISFITS)
        for text, words in MISFITS.items():
            assert words in found[text].message, text
            assert "bolt" in found[text].message
            assert found[text].component == "bolt"
        assert play.emitted("bolt") == [("word", 1)]


def test_misfit_of_a_basic_bolt_takes_its_other_emits_along(run_topology: Any) -> None:
    """If one emit of a basic bolt does not fit, none of that input is sent, on no stream."""
    feeder = FeederSpout("text string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", BasicMisfit()).shuffle_grouping("feeder")
    builder.set_bolt("sink", AckAny()).shuffle_grouping("bolt").shuffle_grouping("bolt", "named")
    with run_topology(builder.create_topology()) as play:
        for batch in (("good", "unpicklable"), ("type", "fine")):
            for text in batch:
                feeder.feed([text], msg_id=text)
            play.settle()
        assert feeder.acked == ["good", "fine"]
        assert feeder.failed == ["unpicklable", "type"]
        assert play.emitted("bolt") == [(1,), (2,), (1,), (2,)]
        assert sorted(play.emitted("bolt", "named")) == [("fine",), ("good",)]
        assert play.statistics().component("sink").executed == 6


def test_spout_values_that_do_not_fit_fail_by_name(run_topology: Any) -> None:
    """A message of the wrong type never runs: its spout hears why, and people do."""
    feeder, topology = one_bolt(Ack())
    with run_topology(topology) as play:
        feeder.feed(["good"], msg_id="good")
        feeder.feed([17], msg_id="bad")
        feeder.feed([18])
        play.settle()
        assert (feeder.acked, feeder.failed) == (["good"], ["bad"])
        assert "feeder/default" in feeder.failures[0].message
        texts = play.texts("feeder")
        assert len(texts) == 2
        assert "'bad'" in texts[0]
        assert "feeder/default" in texts[0]


def test_replayed_values_that_do_not_fit_are_given_up_at_once(run_locally: Any) -> None:
    """No retry mends a value that its own stream cannot carry; the run still drains."""
    builder = ss.TopologyBuilder()
    builder.set_spout("items", IteratorSpout(["good", 17], "text string"))
    builder.set_bolt("bolt", Ack()).shuffle_grouping("items")
    with run_locally(builder.create_topology()) as play:
        statistics = play.drain()
        assert (statistics.acked, statistics.given_up) == (1, 1)
