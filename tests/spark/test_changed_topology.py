"""A changed topology on the checkpoint of the one before: its state is never silently empty."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.testing import PATIENCE_SECS, FeederSpout

pytestmark = pytest.mark.spark

_WORDS = [f"word {number}" for number in range(20)]


class Count(ss.StatefulBolt):
    """Counts words in state."""

    outputs = "word string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["word"], 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], count], anchors=tup)
        self.collector.ack(tup)


class Pass(ss.BasicBolt):
    """Passes words on."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["word"]])


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the bolts of this module to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def counting(steps: int, *, tasks: int = 2) -> tuple[FeederSpout, ss.Topology]:
    """Words through some tasks of a stateless bolt, if any, to those that count."""
    feeder = FeederSpout("word string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feeder)
    source = "feed"
    if steps:
        source = "a-step"  # its tasks are numbered before all others
        builder.set_bolt(source, Pass(), parallelism=steps).shuffle_grouping("feed")
        builder.set_bolt("behind", Pass()).shuffle_grouping("count")
    builder.set_bolt("count", Count(), parallelism=tasks).fields_grouping(source, ["word"])
    return feeder, builder.create_topology()


def counts(spark: Any, checkpoint: Path, steps: int) -> list[tuple[str, int]]:
    """Count each word once more; return what the bolt said."""
    feeder, topology = counting(steps)
    said: list[tuple[str, int]] = []
    run = ss.submit(
        topology,
        name="test",
        session=spark,
        checkpoint=checkpoint,
        taps=["count"],
        on_tap=lambda key, task, rows: said.extend(rows),
    )
    try:
        for word in _WORDS:
            feeder.feed([word], msg_id=word)
        feeder.end()
        assert run.wait_until_drained(PATIENCE_SECS)
    finally:
        run.stop(drain=False)
    return sorted(said)


@pytest.mark.slow
def test_state_stays_when_stateless_bolts_change(spark: Any, tmp_path: Path) -> None:
    """More bolts and more tasks, before and behind: every count goes on where it was."""
    for turn, steps in enumerate((0, 1, 3), start=1):
        assert counts(spark, tmp_path, steps) == sorted((word, turn) for word in _WORDS)


def test_another_number_of_tasks_is_refused(spark: Any, tmp_path: Path) -> None:
    """The state of a word would be looked for in another task: refused before anything runs."""
    assert counts(spark, tmp_path, 0)
    with pytest.raises(ss.CheckpointError, match=r"'count' with 2 tasks \(now 3\)"):
        ss.submit(counting(0, tasks=3)[1], name="test", session=spark, checkpoint=tmp_path)
