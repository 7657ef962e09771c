"""What ends a driver in the middle, and what the next one makes of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

TOTAL = 6


class Numbers(ss.PartitionedSpout):
    """Splits of two; the first look at its progress fails as long as a file is there."""

    outputs = "n int"
    replayable = True

    def __init__(self, broken: Path, acked: Path) -> None:
        self._broken = broken
        self._acked = acked
        self._next = 0

    def plan(self, limit: int) -> list[ss.Split]:
        if self.exhausted():
            return []
        self._next += 2
        return [ss.Split(count=2, data={"from": self._next - 2})]

    def read(self, split: ss.Split) -> Iterable[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(2)]

    def ack(self, split: ss.Split, positions: Any) -> None:
        first = split.data["from"]
        with self._acked.open("a") as file:
            for start, stop in positions:
                file.writelines(f"{first + n}\n" for n in range(start, stop))

    def snapshot(self) -> int:
        if self._broken.exists():
            raise OSError("the store is away")
        return self._next

    def restore(self, snapshot: int) -> None:
        self._next = snapshot

    def exhausted(self) -> bool:
        return self._next >= TOTAL


class Ack(ss.BasicBolt):
    """Nothing more to do."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        pass


class Hold(ss.StatefulBolt):
    """Waits for more than ever comes."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.tuples("held").add("key", tup)


@pytest.fixture
def topology(tmp_path: Path) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", FeederSpout("n int"))
    builder.set_spout("numbers", Numbers(tmp_path / "broken", tmp_path / "acked"))
    builder.set_bolt("bolt", Ack()).shuffle_grouping("feeder").shuffle_grouping("numbers")
    return builder.create_topology()


def acked(tmp_path: Path) -> list[int]:
    return sorted(map(int, (tmp_path / "acked").read_text().split()))


def test_a_plan_that_fails_half_way_ends_the_run(topology: ss.Topology, tmp_path: Path) -> None:
    """What was taken for it is in no batch: this driver would wait for it for ever."""
    files = MemoryFiles()
    (tmp_path / "broken").touch()
    with LocalRunner(topology, files=files) as runner:
        for _ in range(2):  # it stays so, although the store would be back
            with pytest.raises(ss.ComponentError, match="'numbers' raised in snapshot: OSError"):
                runner.step()
            (tmp_path / "broken").unlink(missing_ok=True)
    with LocalRunner(topology, files=files) as runner:
        assert runner.run_until_idle().pending == 0
    assert acked(tmp_path) == list(range(TOTAL))


def test_an_untracked_batch_is_acked_by_the_next_driver(
    topology: ss.Topology, tmp_path: Path
) -> None:
    """If the one that ran it died after Spark's commit, before it could tell the source."""
    files, config = MemoryFiles(), ss.Config(acker_executors=0, batch_max_messages=4)
    dead = LocalRunner(topology, files=files, config=config)
    dead.__enter__()
    assert dead.step()  # its acks come with the next question
    with LocalRunner(topology, files=files, config=config) as runner:
        statistics = runner.run_until_idle()
    assert acked(tmp_path) == list(range(TOTAL))
    assert (statistics.emitted, statistics.acked) == (TOTAL, TOTAL)


def test_what_a_bolt_holds_is_charged_with_no_try(tmp_path: Path) -> None:
    """However often drivers die: nothing failed, and there is no try to spare here."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers(tmp_path / "broken", tmp_path / "acked"))
    builder.set_bolt("bolt", Hold()).shuffle_grouping("numbers")
    topology, files, clock = builder.create_topology(), MemoryFiles(), ManualClock()
    config = ss.Config(max_retries=0, message_timeout_secs=1e6)
    for _ in range(4):
        runner = LocalRunner(topology, files=files, config=config, clock=clock)
        runner.__enter__()
        clock.advance(1000)
        while runner.step():
            pass
        assert (runner.statistics().given_up, runner.statistics().pending) == (0, TOTAL)
