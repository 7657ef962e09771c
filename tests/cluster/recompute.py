"""The driver program of the recomputation tests: numbers counted while Spark is made to repeat.

Run as ``python recompute.py SPEC RESULT``: SPEC is JSON with

- ``master``, and ``workers``, the process ids of its workers;
- ``messages``, and ``folder``, where bolts note each run of a task;
- ``disturb``: ``kill`` an executor, delete its shuffle ``files``, or ``slow`` one down;
- ``seed`` and ``times``: at which moments, and how often;
- ``wild``: with bolts whose output changes from run to run;
- ``state_of``: the bolts whose state is told in the end;
- ``flaky``: with every hundredth number, counting fails for the first time.

The result is JSON, too; ``state`` is what each counting bolt has in its committed state.
"""

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sparkstorm as ss
from sparkstorm.cli.state.commands import StateOptions, read_state
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import PATIENCE_SECS
from tests.cluster.executors import executors_of

_STAGE_SECS, _SLOW_SECS = 0.4, 5.0
_PARTITIONS = 4
"""Twice as many as there are cores: the second half of a stage's tasks fetches what it needs when
the first half is done, and what was lost meanwhile shows."""


class Noting(ss.BasicBolt):
    """Notes each run of one of its tasks as a file, and takes a while; passes its input on."""

    outputs = "n int, text string"
    transient = ("noted",)

    def __init__(self, folder: str, *, slow: bool, wild: bool) -> None:
        self.folder = folder
        self.slow = slow
        self.wild = wild
        self.noted = -1

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if self.noted != self.context.batch:
            self.noted = self.context.batch
            self._note()
        collector.emit([tup["n"], str(time.time_ns()) if self.wild else "same"])

    def _note(self) -> None:
        run = f"{self.context.batch}-{self.context.component}-{self.context.task}"
        (Path(self.folder) / f"{run}-{uuid.uuid4()}").touch()
        slow = self.slow and Path.cwd().name == "0"  # an executor's folder is named by its number
        threading.Event().wait(_SLOW_SECS if slow else _STAGE_SECS)


class Count(ss.StatefulBolt):
    """Counts in state; some fail for the first time, in whichever process that is."""

    outputs = "n int, count long"

    def __init__(self, folder: str, *, flaky: bool) -> None:
        self.folder = folder
        self.flaky = flaky

    def execute(self, tup: ss.Tuple) -> None:
        if self.flaky and tup["n"] % 100 == 0 and self._is_first(tup["n"]):
            raise ConnectionError("database away")
        count = self.state.get(tup["n"], 0) + 1
        self.state.put(tup["n"], count)
        self.collector.emit([tup["n"], count], anchors=tup)
        self.collector.ack(tup)

    def _is_first(self, number: int) -> bool:
        try:
            (Path(self.folder).parent / f"{self.context.component}-{number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class Wild(ss.CustomGrouping):
    """Breaks the rule: it routes at random."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        return [random.SystemRandom().choice(tasks)]


def topology(spec: dict[str, Any]) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(spec["messages"]), "n int"))
    noting = Noting(spec["folder"], slow=spec["disturb"] == "slow", wild=spec["wild"])
    builder.set_bolt("first", noting, _PARTITIONS).shuffle_grouping("numbers")
    second = builder.set_bolt("second", noting, _PARTITIONS)
    if spec["wild"]:
        second.custom_grouping("first", Wild())
    else:
        second.shuffle_grouping("first")
    count = Count(spec["folder"], flaky=spec["flaky"])
    builder.set_bolt("count", count, _PARTITIONS).fields_grouping("second", ["n"])
    if spec["flaky"]:
        third = builder.set_bolt("third", noting, _PARTITIONS)
        third.shuffle_grouping("count")
        builder.set_bolt("again", count, _PARTITIONS).fields_grouping("third", ["n"])
    return builder.create_topology()


def committed(checkpoint: Path, component: str) -> list[tuple[int, int]]:
    """The committed state of a bolt."""
    options = StateOptions(name="numbers", component=component, checkpoint=str(checkpoint))
    with read_state(options) as rows:
        return [(row.item.key, row.item.value) for row in rows]


def disturb(how: str, executor: int) -> bool:
    """Kill an executor, or delete what its tasks have written for later ones; say if it was so."""
    with contextlib.suppress(OSError):
        if how == "kill":
            os.kill(executor, signal.SIGKILL)
            return True
        environment = Path(f"/proc/{executor}/environ").read_bytes().split(b"\0")
        prefix = b"SPARK_EXECUTOR_DIRS="
        folders = [entry.removeprefix(prefix) for entry in environment if entry.startswith(prefix)]
        files = list(Path(folders[0].decode()).rglob("shuffle_*.data"))
        for file in files:
            file.unlink(missing_ok=True)
        return bool(files)
    return False


def fresh(folder: Path) -> bool:
    """Tell whether a task has noted its run just now."""
    started = [entry.stat().st_mtime for entry in os.scandir(folder)]
    return bool(started) and time.time() - max(started) < _STAGE_SECS / 4


def main(spec: dict[str, Any], result: Path) -> None:
    rng, never, done = random.Random(spec["seed"]), threading.Event(), 0
    checkpoint = result.with_name("checkpoint")
    counted: list[tuple[int, int]] = []
    with ss.submit(
        topology(spec),
        name="numbers",
        master=spec["master"],
        checkpoint=checkpoint,
        config={
            "batch_min_messages": 1_000,
            "batch_max_messages": 1_000,
            "partitions": _PARTITIONS,
        },
        taps=["count"],
        on_tap=lambda key, task, rows: counted.extend(rows),
    ) as run:
        while spec["disturb"] != "slow" and done < spec["times"] and not run._drained():
            run._check()
            if not fresh(Path(spec["folder"])):
                never.wait(0.01)
                continue
            never.wait(rng.uniform(0.0, _STAGE_SECS))  # in the middle of some stage
            alive = executors_of(spec["workers"])
            done += bool(alive) and disturb(spec["disturb"], rng.choice(alive))
            never.wait(rng.uniform(0.0, 3.0))
        drained = run.wait_until_drained(PATIENCE_SECS)
        statistics = run.statistics()
    answer = {
        "counted": counted,
        "disturbed": done,
        "drained": drained,
        "acked": statistics.acked,
        "failed": statistics.failed,
        "retried": statistics.retried,
        "pending": statistics.pending,
        "state": {bolt: committed(checkpoint, bolt) for bolt in spec["state_of"]},
    }
    result.write_text(json.dumps(answer))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
