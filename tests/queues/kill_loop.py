"""Kills driver, worker and server while words are counted from a queue; then looks what is left."""

import logging
import os
import pickle
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from sparkstorm.queues import QueueSpout
from sparkstorm.testing.queues import QueueBench
from tests.crashes import processes

_PAUSE_SECS = 4.0
_LONGEST_SECS = 400.0


def kill_loop(
    bench: QueueBench, spout: QueueSpout, folder: Path, *, lines: int, kills: int
) -> None:
    """Count the words of numbered lines until nothing is left, under so many kills at most.

    Raises:
        AssertionError: a line was never processed, or the queue is not empty in the end.
    """
    dice = random.Random(7)
    bench.send([f"{number} to be or not".encode() for number in range(lines)])
    witnesses = folder / "witnesses"
    witnesses.mkdir()
    (folder / "spout").write_bytes(pickle.dumps(spout))
    killed: Counter[str] = Counter()
    deadline = time.monotonic() + _LONGEST_SECS
    while (code := _live(folder, bench, dice, killed, kills, deadline)) != 0:
        assert code < 0 or killed["server"], (folder / "log").read_text()[-4000:]
        assert time.monotonic() < deadline, f"not through in time: {killed}"
    seen = Counter(
        int(number) for file in witnesses.iterdir() for number in file.read_text().split()
    )
    lost = set(range(lines)) - set(seen)
    assert not lost, f"{len(lost)} lines were lost, {sorted(lost)[:5]} among them"
    assert bench.counts() == (0, 0)
    assert killed
    logging.getLogger(__name__).info("%s, %d lines twice", dict(killed), seen.total() - lines)


def _live(
    folder: Path,
    bench: QueueBench,
    dice: random.Random,
    killed: Counter[str],
    kills: int,
    deadline: float,
) -> int:
    """One life of the driver; return its exit code."""
    program = str(Path(__file__).with_name("killed_words.py"))
    command = [sys.executable, program, *(str(folder / name) for name in _PLACES)]
    with (folder / "log").open("ab") as log:
        driver = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(_ROOT)}
        )
    try:
        while time.monotonic() < deadline:
            try:
                return driver.wait(dice.uniform(0.5, _PAUSE_SECS))
            except subprocess.TimeoutExpired:
                pass
            workers = processes.find(driver.pid, "worker")  # before that nothing is learnt
            if workers and killed.total() < kills:
                kind = dice.choice(("driver", "worker", "server"))
                killed[kind] += 1
                if kind == "server":
                    bench.stop()
                    bench.start()
                else:
                    processes.kill(driver.pid if kind == "driver" else dice.choice(workers))
        return 1
    finally:
        processes.kill(driver.pid)
        driver.wait()


_ROOT = Path(__file__).parents[2]
_PLACES = ("spout", "witnesses", "checkpoint")
