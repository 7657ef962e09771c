"""Children are killed again and again while sentences flow: nothing is lost, nothing stays."""

import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import LocalRunner, wait_until

CHILDREN = Path(__file__).parents[1] / "behaviour" / "children"
CONFIG = {"topology.max.retries": "none", "topology.retry.backoff.max.secs": 0.5}


class Killer:
    """Kills one of the children that were seen, each time that some were."""

    def __init__(self, pause_secs: float) -> None:
        self.killed = 0
        self.seen: set[int] = set()
        self.words: Counter[str] = Counter()
        self._pause_secs = pause_secs
        self._fresh: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._dice = random.Random(7)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def tap(self, key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        """Take note of words, and of children that may be killed."""
        self.words.update(word for word, _, _ in rows)
        pids = {pid for _, _, pid in rows} - self.seen
        self.seen |= pids
        self._fresh |= pids

    def _run(self) -> None:
        while not self._over.wait(self._pause_secs):
            if self._fresh:
                pid = self._dice.choice(sorted(self._fresh))
                self._fresh.discard(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed += 1


def counting(count: int) -> ss.Topology:
    def items() -> Iterator[tuple[str]]:
        return ((f"w{number}",) for number in range(count))

    builder = ss.TopologyBuilder()
    builder.set_spout("words", IteratorSpout(items, outputs="word string"))
    command = [sys.executable, "roles.py", "count"]
    bolt = ShellBolt(command, outputs=["word", "n", "pid"], resources=CHILDREN)
    builder.set_bolt("count", bolt, 2).shuffle_grouping("words")
    return builder.create_topology()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nothing_is_lost_and_nothing_stays() -> None:
    config = ss.Config.parse({**CONFIG, "topology.batch.max.messages": 1000})
    with Killer(0.05) as killer:
        runner = LocalRunner(counting(10_000), taps=["count"], on_tap=killer.tap, config=config)
        with runner:
            wait_until(lambda: not runner.step() and runner.coordinator.drained)
            statistics = runner.statistics()
    assert statistics.acked == len(killer.words) == 10_000
    assert killer.killed > 0
    wait_until(lambda: not any(map(is_running, killer.seen)))


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.spark
def test_a_hundred_thousand_on_spark(spark: Any) -> None:
    with Killer(0.3) as killer:
        run = ss.submit(
            counting(100_000), session=spark, taps=["count"], on_tap=killer.tap, config=CONFIG
        )
        try:
            assert run.wait_until_drained(240), run.statistics()
        finally:
            statistics = run.stop(drain=False)
    assert statistics.acked == 100_000
    assert len(killer.words) == 100_000
    assert killer.killed > 0
    wait_until(lambda: not any(map(is_running, killer.seen)))
