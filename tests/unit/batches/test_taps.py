"""Tapped tuples: who watches changes nothing."""

import inspect
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.planning.plan import StreamKey
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import LocalRunner


class Copy(ss.BasicBolt):
    """Emits what it gets."""

    outputs = "n int"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup[0]])


def load() -> object:
    """Load something, but not where it is shown."""
    if any(frame.function == "tell" for frame in inspect.stack()):
        raise ValueError("not here")
    return Unloadable()


class Unloadable:
    """Can be pickled, but not be loaded again where it is shown."""

    def __reduce__(self) -> Any:
        return (load, ())


class EmitsUnloadable(ss.BasicBolt):
    """Emits what only shows where it is shown that it cannot be loaded."""

    outputs = "thing"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([Unloadable()])


def topology(bolt: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(6), "n int"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    return builder.create_topology()


def run(tapped: ss.Topology, on_tap: Any) -> ss.Statistics:
    config = ss.Config(batch_max_messages=2)
    with LocalRunner(tapped, config=config, taps=["numbers", "bolt"], on_tap=on_tap) as runner:
        statistics = runner.run_until_idle()
        assert runner.coordinator.drained
    return statistics


def test_a_tap_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Its tuples are not shown again, those after them are; one line tells of it."""
    asked: list[int] = []
    shown: list[int] = []

    def tap(key: StreamKey, task: int, rows: list[tuple[int]]) -> None:
        numbers = [n for (n,) in rows]
        if key.component == "bolt":
            asked.extend(numbers)
            if min(numbers) < 4:
                raise KeyError("colour")
            shown.extend(numbers)

    assert run(topology(Copy()), tap).acked == 6
    assert (sorted(asked), sorted(shown)) == ([0, 1, 2, 3, 4, 5], [4, 5])
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "the tap of 'bolt' raised KeyError: 'colour'; the run goes on" in record.getMessage()


def test_each_tap_that_raises_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """What is wrong with one component says nothing of another."""

    def tap(key: StreamKey, task: int, rows: list[tuple[int]]) -> None:
        raise ValueError(key.component)

    run(topology(Copy()), tap)
    texts = sorted(record.getMessage().split(";")[0] for record in caplog.records)
    assert texts == [
        "the tap of 'bolt' raised ValueError: bolt",
        "the tap of 'numbers' raised ValueError: numbers",
    ]


def test_tuples_that_cannot_be_loaded_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Only the tap needs them where it runs."""
    shown: list[str] = []
    run(topology(EmitsUnloadable()), lambda key, task, rows: shown.append(key.component))
    assert set(shown) == {"numbers"}
    assert "the tap of 'bolt' raised ValueError: not here" in caplog.text
