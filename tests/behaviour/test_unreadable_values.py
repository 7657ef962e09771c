"""Values that cannot travel, or not be read again: their messages fail alone, by name."""

import threading
from collections.abc import Callable
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
