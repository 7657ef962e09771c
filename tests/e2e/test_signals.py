"""Signals at every phase of a run: it ends as it should, and leaves no process behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstorm.testing import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc"),
]

ENDLESS = """
import itertools
import sparkstorm as ss

class Count(ss.StatefulBolt):
    outputs = "n long"

    def execute(self, tup):
        self.state.add(tup["n"] % 10)
        self.collector.emit(tup.values, anchors=tup)
        self.collector.ack(tup)

builder = ss.TopologyBuilder()
builder.set_spout("numbers", ss.spouts.IteratorSpout(itertools.count, outputs="n long"))
builder.set_bolt("count", Count()).shuffle_grouping("numbers")
topology = builder.create_topology()
"""

GONE_SECS = 10.0


class Program:
    """``sparkstorm run`` on an endless topology; its processes know it by an entry of theirs."""

    def __init__(self, folder: Path) -> None:
        topology = folder / "endless.py"
        topology.write_text(ENDLESS)
        self._entry = f"SIGNALLED={uuid.uuid4()}"
        name, _, value = self._entry.partition("=")
        self._said = folder / "said"
        command = [sys.executable, "-m", "sparkstorm", "run", str(topology), "--tap", "count"]
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [*command, "--master", "local[2]", "--drain-secs", "20"],
                env=os.environ | {name: value},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """All that it printed."""
        return self._said.read_text()

    def processes(self) -> list[str]:
        """Return the commands of its processes that still run."""
        return [*self._processes()]

    def _processes(self) -> Iterator[str]:
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and self._entry in (folder / "environ").read_text():
                    yield (folder / "cmdline").read_text().replace("\0", " ")

    def has_a_jvm(self) -> bool:
        """Whether its Java has begun."""
        return any("java" in command for command in self.processes())


PHASES: dict[str, Callable[[Program], bool]] = {
    "importing": lambda program: True,
    "Java begins": lambda program: program.has_a_jvm(),
    "Spark begins": lambda program: any("SparkSubmit" in one for one in program.processes()),
    "the query begins": lambda program: any("daemon" in one for one in program.processes()),
    "the first batch": lambda program: "running" in program.said,
    "batches run": lambda program: '"component"' in program.said,
}


def ended(folder: Path, phase: str, number: signal.Signals, *, whole_group: bool) -> Program:
    """Send a signal at a phase, and return the program when it has ended."""
    program = Program(folder)
    wait_until(lambda: PHASES[phase](program))
    send = os.killpg if whole_group else os.kill
    send(program.process.pid, number)
    program.process.wait()
    gone_by = time.monotonic() + GONE_SECS
    wait_until(lambda: not program.processes())
    assert time.monotonic() < gone_by
    return program


def check(program: Program, phase: str) -> None:
    said = program.said
    assert "report it" not in said, said
    assert "Exception" not in said, said
    if phase == "batches run":
        assert program.process.returncode == 0, said
        assert "0 pending" in said
    elif phase != "importing":  # Python itself ends before any of our code runs
        assert program.process.returncode in (0, 130), said
        assert "Traceback" not in said, said


def test_sigterm_to_the_group_drains_a_run(tmp_path: Path) -> None:
    """As ``timeout`` and some containers send it: Java does not get it."""
    check(ended(tmp_path, "batches run", signal.SIGTERM, whole_group=True), "batches run")


def test_ctrl_c_while_spark_begins_leaves_nothing(tmp_path: Path) -> None:
    """No JVM, and no stack of Java's."""
    check(ended(tmp_path, "Spark begins", signal.SIGINT, whole_group=True), "Spark begins")


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_at_every_phase(tmp_path: Path, number: signal.Signals, phase: str) -> None:
    """One signal to all processes of the group."""
    check(ended(tmp_path, phase, number, whole_group=True), phase)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_kill_at_every_phase_leaves_nothing(tmp_path: Path, phase: str) -> None:
    """Whatever the driver has started sees that it is gone."""
    ended(tmp_path, phase, signal.SIGKILL, whole_group=False)
