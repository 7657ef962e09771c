"""A stage with state that Spark runs twice in one batch: what was acked is in the committed state.

Spark commits the state of the run that came first, and hands on what the last one sent.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.spark.driver.storage.kept_state import StateReader
from sparkstorm.state.view import items_of
from sparkstorm.testing import PATIENCE_SECS, LogSpout

pytestmark = pytest.mark.spark

_PARTITIONS = 4
"""Twice as many as there are cores: tasks of the second half find that the files are gone."""

_MESSAGES = 40
_UNLUCKY = frozenset({7, 12, 31})


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the bolts of this module to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


class Count(ss.StatefulBolt):
    """Counts in state; for some numbers the database is away the first time, in any process."""

    outputs = "n int"

    def __init__(self, folder: Path, *, away: bool = True) -> None:
        self.folder = folder
        self.away = away

    def execute(self, tup: ss.Tuple) -> None:
        number = tup["n"]
        if self.away and number in _UNLUCKY and is_first(self.folder / f"away-{number}"):
            raise ConnectionError("database away")
        self.state.put(number, self.state.get(number, 0) + 1)
        self.collector.emit([number], anchors=tup)
        self.collector.ack(tup)


class LoseFiles(ss.BasicBolt):
    """Deletes what Spark's tasks have written for later ones, once; passes numbers on."""

    outputs = "n int"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if is_first(self.folder / "lost"):
            for place in os.environ["SPARK_LOCAL_DIRS"].split(","):
                for file in Path(place).rglob("shuffle_*.data"):
                    file.unlink(missing_ok=True)
        collector.emit([tup["n"]])


def is_first(marker: Path) -> bool:
    """Tell whether nobody was here before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def topology(folder: Path, *, away: bool) -> ss.Topology:
    """Numbers are counted, and counted again behind the bolt that loses files."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout([[n] for n in range(_MESSAGES)], "n int"))
    count = Count(folder, away=away)
    builder.set_bolt("count", count, _PARTITIONS).fields_grouping("numbers", "n")
    builder.set_bolt("lose", LoseFiles(folder), _PARTITIONS).fields_grouping("count", "n")
    return builder.create_topology()


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize(
    "away", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fails-once", "deterministic"]
)
def test_what_is_acked_is_in_the_committed_state(
    spark: Any, tmp_path: Path, guarantee: str, away: bool
) -> None:
    """Of a bolt that fails some messages only in its first run, as of one that never does."""
    where = str(tmp_path / "checkpoint")
    config = {
        "partitions": _PARTITIONS,
        "processing_guarantee": guarantee,
        "retry_backoff_secs": 0.01,
    }
    made = topology(tmp_path, away=away)
    with ss.submit(made, name="twice", session=spark, checkpoint=where, config=config) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        statistics = run.statistics()
    assert (tmp_path / "lost").exists()
    assert bool(statistics.rollbacks) == away  # runs that did the same need not be repeated
    reader = StateReader(spark, where, 1)
    stores = [store for _, store in reader.chunks("count", _PARTITIONS)]
    counted = {item.key: item.value for store in stores for item in items_of(store)}
    assert (statistics.acked, statistics.pending) == (_MESSAGES, 0)
    assert counted == Counter(range(_MESSAGES))
