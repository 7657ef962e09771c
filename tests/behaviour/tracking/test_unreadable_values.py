"""Values that cannot travel, or not be read again: their messages fail alone, by name."""

import inspect
import threading
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import FeederSpout


class ApiError(Exception):
    """Of a common shape: what pickle calls it with again is the text alone."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


class Call(ss.BasicBolt):
    """Emits for 13 what cannot travel."""

    outputs = ("n", "error")

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["n"], self.make() if tup["n"] == 13 else None])


class Pass(ss.BasicBolt):
    """Emits the number that it gets."""

    outputs = ("n",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["n"]])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: ApiError(500, "no"), "can be pickled, but not be read again: TypeError: ApiError"),
        (threading.Lock, "cannot be pickled: cannot pickle '_thread.lock' object"),
    ],
    ids=["unreadable", "unpicklable"],
)
def test_message_of_an_emitted_value_fails_alone(run_topology: Any, make: Any, why: str) -> None:
    """With the bolt that emitted it, the stream, the field and the error; all others go on."""
    feeder = FeederSpout("n long")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("call", Call(make)).shuffle_grouping("feeder")
    builder.set_bolt("end", Pass(), 2).shuffle_grouping("call")
    with run_topology(builder.create_topology()) as play:
        for n in range(20):
            feeder.feed([n], msg_id=n)
        play.settle()
        assert feeder.failed == [13]
        assert sorted(feeder.acked) == [n for n in range(20) if n != 13]
        assert sorted(play.emitted("end")) == [(n,) for n in range(20) if n != 13]
    [failure] = feeder.failures
    assert failure.component == "call"
    assert f"'call/default': field 'error': a value {why}" in failure.message


def test_message_of_a_spouts_value_fails_alone(run_topology: Any) -> None:
    """It never runs: the spout hears why."""
    feeder = FeederSpout(["n", "error"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("end", Pass(), 2).shuffle_grouping("feeder")
    with run_topology(builder.create_topology()) as play:
        for n in range(4):
            feeder.feed([n, ApiError(500, "no") if n == 2 else None], msg_id=n)
        play.settle()
        assert feeder.failed == [2]
        assert sorted(feeder.acked) == [0, 1, 3]
    assert "'feeder/default': field 'error': a value can be" in feeder.failures[0].message


class Choosy:
    """Can be read where it is emitted; where its packet is received, only even ones can."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __setstate__(self, state: dict[str, int]) -> None:
        if state["n"] % 2 and any(frame.function == "read" for frame in inspect.stack()):
            raise ImportError(f"no module for {state['n']} here")
        self.n = state["n"]


class Choose(ss.BasicBolt):
    """Wraps numbers."""

    outputs = ("thing",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([Choosy(tup[0])])


class Open(ss.BasicBolt):
    """Unwraps numbers, each twice."""

    outputs = MappingProxyType({"default": "n long", "more": "n long"})

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["thing"].n])
        collector.emit([tup["thing"].n], stream="more")


class OpenAsync(Open):
    """Unwraps numbers in a coroutine."""

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:  # type: ignore[override]
        super().execute(tup, collector)


class OpenAndAck(ss.Bolt):
    """Unwraps numbers, and acks by itself."""

    outputs = MappingProxyType({"default": "n long", "more": "n long"})

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([tup["thing"].n], anchors=tup)
        self.collector.emit([tup["thing"].n], anchors=tup, stream="more")
        self.collector.ack(tup)


class FailsFour(ss.BasicBolt):
    """Fails one number, so that it shows whose it was."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 4:
            raise ValueError("four")


@pytest.mark.parametrize("tail", ["default", "more"])
@pytest.mark.parametrize(
    ("bolt", "concurrency"), [(Open(), 1), (Open(), 3), (OpenAsync(), 3), (OpenAndAck(), 1)]
)
def test_what_only_the_receiver_cannot_read_fails_alone(
    run_locally: Any, bolt: Any, concurrency: int, tail: str
) -> None:
    """Nothing of it is executed; the emits of all others keep their parents."""
    feeder = FeederSpout("n long")
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("choose", Choose()).shuffle_grouping("feeder")
    builder.set_bolt("open", bolt, concurrency=concurrency).shuffle_grouping("choose")
    builder.set_bolt("tail", FailsFour()).shuffle_grouping("open", tail)
    with run_locally(builder.create_topology()) as play:
        for n in range(7):
            feeder.feed([n], msg_id=n)
        play.settle()
        assert sorted(feeder.acked) == [0, 2, 6]
        assert play.emitted("open") == [(0,), (2,), (4,), (6,)]
    found = dict(zip(feeder.failed, feeder.failures, strict=True))
    assert sorted(found) == [1, 3, 4, 5]
    assert found[4].component == "tail"
    for n in (1, 3, 5):
        assert found[n].component == "open"
        assert found[n].message == (
            "EmitError: 'open' cannot read stream 'choose/default': field 'thing': "
            f"ImportError: no module for {n} here"
        )


def test_what_only_the_router_cannot_read_fails_alone(run_locally: Any) -> None:
    """Messages of hosted spouts are read where they are routed."""
    feeder = FeederSpout(["thing"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("open", Open()).shuffle_grouping("feeder")
    with run_locally(builder.create_topology()) as play:
        for n in range(4):
            feeder.feed([Choosy(n)], msg_id=n)
        play.settle()
        assert sorted(feeder.acked) == [0, 2]
        assert play.emitted("open") == [(0,), (2,)]
    assert sorted(feeder.failed) == [1, 3]
    assert "field 'thing': ImportError: no module for" in feeder.failures[0].message
