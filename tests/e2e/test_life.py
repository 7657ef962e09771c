"""``sparkstorm run`` killed, paused and started again: nothing is lost, and it says what happened.

What a driver acked, its successor does not process again; what was committed is counted once.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkstorm.testing import PATIENCE_SECS, wait_until

pytestmark = pytest.mark.e2e

LINES = 240
ROOT = Path(__file__).parents[2]

COUNTING = """
import os, time
import sparkstorm as ss
from tests.tools.word_count import word_count

class Split(ss.BasicBolt):
    outputs = "word string"

    def execute(self, tup, collector):
        time.sleep(0.02)
        while os.path.exists(os.environ["HOLD"]):
            time.sleep(0.05)
        for word in tup["sentence"].split():
            collector.emit([word])

def topology(args):
    return word_count(ss.spouts.LinesSpout(*args), split=Split())
"""

DEADLY = """
import os, pathlib
import sparkstorm as ss

class Deadly(ss.BasicBolt):
    outputs = "line string"

    def execute(self, tup, collector):
        if tup["sentence"] == "bad":
            os.kill(int(pathlib.Path(os.environ["DRIVER"]).read_text()), 9)
        collector.emit([tup["sentence"]])

def topology(args):
    pathlib.Path(os.environ["DRIVER"]).write_text(str(os.getpid()))
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(*args))
    builder.set_bolt("deadly", Deadly(), parallelism=2).shuffle_grouping("lines")
    return builder.create_topology()
"""


CUT_OFF = """
import os, signal
import sparkstorm as ss

class CutOff(ss.Spout):
    outputs = "n long"

    def open(self, config, context, collector):
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as children:
            for pid in map(int, children.read().split()):
                if "java" in os.readlink(f"/proc/{pid}/exe"):
                    os.kill(pid, signal.SIGKILL)

    def next_tuple(self):
        pass

class Pass(ss.BasicBolt):
    def execute(self, tup, collector):
        pass

builder = ss.TopologyBuilder()
builder.set_spout("cut_off", CutOff())
builder.set_bolt("pass", Pass()).shuffle_grouping("cut_off")
topology = builder.create_topology()
"""


class Run:
    """A running ``sparkstorm run`` with its output in files."""

    def __init__(self, folder: Path, name: str, *args: str | Path) -> None:
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        command = [sys.executable, "-m", "sparkstorm", "run", *map(str, args)]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            paths = {"DRIVER": str(folder / "driver.pid"), "HOLD": str(folder / "hold")}
            env = {**os.environ, **paths, "PYTHONPATH": str(ROOT)}
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=env)

    @property
    def said(self) -> str:
        return self._err.read_text()

    def tapped(self) -> list[tuple[str, int]]:
        """The words counted so far, with their counts; a line cut off by a kill is not one."""
        lines = [line for line in self._out.read_text().splitlines(True) if line[-1] == "\n"]
        rows = [json.loads(line)["values"] for line in lines]
        return [(row["word"], row["count"]) for row in rows]

    def jvm(self) -> int:
        """The process of its JVM."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "java" and int(rest.split()[1]) == self.process.pid:
                return int(stat.parent.name)
        raise AssertionError(f"it has no JVM: {self.said}")

    def check(self) -> None:
        assert self.process.poll() is None, self.said

    def wait(self) -> int:
        return self.process.wait(PATIENCE_SECS)


@contextmanager
def running(folder: Path, name: str, *args: str | Path) -> Iterator[Run]:
    run = Run(folder, name, *args)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


@pytest.fixture
def counting(tmp_path: Path) -> list[str | Path]:
    """The arguments of a run that counts words, about 40 lines in a batch of half a second."""
    (tmp_path / "counting.py").write_text(COUNTING)
    (tmp_path / "lines.txt").write_text("".join(f"w{n % 7} w{n % 5}\n" for n in range(LINES)))
    options: list[str | Path] = [
        tmp_path / "counting.py",
        "--tap",
        "count",
        "--checkpoint",
        tmp_path / "checkpoint",
    ]
    limits = ["-c", "batch_max_messages=40", "-c", "lease_timeout_secs=6", "--master", "local[2]"]
    return [*options, *limits, "--available-now", "--", tmp_path / "lines.txt"]


def check_counts(*runs: Run) -> None:
    """All words were counted; each count at most once, since state commits with the batch.

    The taps of a batch on which a driver was killed may be missing.
    """
    expected: Counter[str] = Counter()
    for number in range(LINES):
        expected.update([f"w{number % 7}", f"w{number % 5}"])
    seen = [pair for run in runs for pair in run.tapped()]
    assert max(Counter(seen).values()) == 1
    assert {word: max(n for w, n in seen if w == word) for word in expected} == expected


@pytest.mark.slow
def test_a_run_whose_jvm_dies_says_so_and_can_be_started_again(
    tmp_path: Path, counting: list[str | Path]
) -> None:
    """A second run is refused meanwhile; after kill -9 of the JVM the counts are exact."""
    with running(tmp_path, "first", *counting) as first:
        wait_until(lambda: len(first.tapped()) >= 80, check=first.check)
        (tmp_path / "hold").touch()  # it may not be done before the second looks
        with running(tmp_path, "second", *counting) as second:
            assert second.wait() == 2
        assert f"pid {first.process.pid}, since 20" in second.said
        os.kill(first.jvm(), signal.SIGKILL)
        assert first.wait() == 3
    assert "the JVM that Spark runs in has ended: it was ended by SIGKILL" in first.said
    assert "restart on the same checkpoint goes on" in first.said
    for noise in ("Traceback", "py4j", "Py4J"):
        assert noise not in first.said
    (tmp_path / "hold").unlink()
    with running(tmp_path, "third", *counting) as third:
        assert third.wait() == 0, third.said
    check_counts(first, third)


def test_a_jvm_that_dies_while_the_run_starts_is_named(tmp_path: Path) -> None:
    """It is no bug of ours, so the sentence and the exit code are those of any dead JVM."""
    topology = tmp_path / "cut_off.py"
    topology.write_text(CUT_OFF)
    with running(tmp_path, "only", topology, "--master", "local[2]") as run:
        assert run.wait() == 3, run.said
    assert "the JVM that Spark runs in has ended: it was ended by SIGKILL" in run.said
    for noise in ("Traceback", "py4j", "Py4J", "unexpected"):
        assert noise not in run.said


@pytest.mark.slow
def test_a_killed_driver_is_succeeded_at_once_and_a_paused_one_after_a_while(
    tmp_path: Path, counting: list[str | Path]
) -> None:
    """The paused one stops when it wakes up, and has changed nothing."""
    with running(tmp_path, "first", *counting) as first:
        wait_until(lambda: len(first.tapped()) >= 80, check=first.check)
        first.process.kill()
    with running(tmp_path, "second", *counting) as second:
        wait_until(lambda: "running" in second.said, check=second.check)
        assert "in use by" not in second.said
        wait_until(lambda: bool(second.tapped()), check=second.check)
        jvm = second.jvm()
        os.kill(second.process.pid, signal.SIGSTOP)
        os.kill(jvm, signal.SIGSTOP)
        with running(tmp_path, "third", *counting) as third:
            assert third.wait() == 0, third.said
        assert f"in use by run {third.said.split('in use by run ')[1][:8]}" in third.said
        assert f"pid {second.process.pid}, since 20" in third.said
        os.kill(jvm, signal.SIGCONT)
        os.kill(second.process.pid, signal.SIGCONT)
        assert second.wait() == 2
    assert "another run has taken over its checkpoint" in second.said
    check_counts(first, second, third)


@pytest.mark.slow
def test_a_line_that_kills_the_driver_is_given_up(tmp_path: Path) -> None:
    """Restarted again and again, the driver finds the one line that kills it."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    lines = [f"good {n}" for n in range(30)]
    (tmp_path / "lines.txt").write_text("\n".join([*lines[:11], "bad", *lines[11:]]))
    options: list[str | Path] = ["--checkpoint", tmp_path / "checkpoint"]
    options += ["-c", "max_retries=0", "--tap", "deadly"]
    arguments = [*options, "--master", "local[2]", "--available-now", "--", tmp_path / "lines.txt"]
    codes, seen = list[int](), set[str]()
    while not codes or codes[-1] == -9:
        assert len(codes) < 6
        with running(tmp_path, "deadly", tmp_path / "deadly.py", *arguments) as run:
            codes.append(run.wait())
            out = (tmp_path / "deadly.out").read_text()
            seen |= {json.loads(line)["values"]["line"] for line in out.splitlines()}
    assert codes == [-9, -9, -9, 1], run.said
    assert "was given up after 1 try: lost: the driver has died while this message" in run.said
    assert seen == set(lines)
