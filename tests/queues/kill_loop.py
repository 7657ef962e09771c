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
_LONGEST_SECS = 500.0
_KINDS = ("driver", "worker", "server")


class _Victims:
    """Says what is killed next: each kind once, then kinds at random."""

    def __init__(self, dice: random.Random, kills: int) -> None:
        first = dice.sample(_KINDS, len(_KINDS))
        self._next = [*first, *dice.choices(_KINDS, k=kills - len(_KINDS))]
        self.killed: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._next)

    def take(self) -> str:
        """Return the next kind, and count it as killed."""
        kind = self._next.pop(0)
        self.killed[kind] += 1
        return kind


def kill_loop(
    bench: QueueBench, spout: QueueSpout, folder: Path, *, lines: int, kills: int
) -> None:
    """Count the words of numbered lines until all kills are done and nothing is left.

    A driver that is through before the last kill gets as many lines again.

    Raises:
        AssertionError: a line was never processed, or the queue is not empty in the end.
    """
    dice = random.Random(7)
    victims = _Victims(dice, kills)
    witnesses = folder / "witnesses"
    witnesses.mkdir()
    (folder / "spout").write_bytes(pickle.dumps(spout))
    sent, code = 0, 0
    deadline = time.monotonic() + _LONGEST_SECS
    while victims or code != 0:
        if code == 0:
            bench.send([f"{sent + n} to be or not".encode() for n in range(lines)])
            sent += lines
        code = _live(folder, bench, dice, victims, deadline)
        assert code <= 0 or victims.killed["server"], (folder / "log").read_text()[-4000:]
        assert time.monotonic() < deadline, f"not through in time: {victims.killed}"
    seen = Counter(
        int(number) for file in witnesses.iterdir() for number in file.read_text().split()
    )
    lost = set(range(sent)) - set(seen)
    assert not lost, f"{len(lost)} lines were lost, {sorted(lost)[:5]} among them"
    assert bench.counts() == (0, 0)
    assert set(victims.killed) == set(_KINDS)
    twice = seen.total() - sent
    logging.getLogger(__name__).info("%s, %d of %d twice", dict(victims.killed), twice, sent)


def _live(
    folder: Path,
    bench: QueueBench,
    dice: random.Random,
    victims: _Victims,
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
            if workers and victims:
                kind = victims.take()
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
