"""A run of tests that is interrupted or killed leaves no process behind.

The tests here start pytest on a test that starts processes, end it, and look at ``/proc``.
"""

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstorm.testing import wait_until
from sparkstorm.testing.servers import PostgresServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc"),
]

ROOT = Path(__file__).parents[2]

SERVER = """
import pathlib, signal, subprocess, sys, threading
from sparkstorm.testing.servers import PostgresServer

def test_that_hangs(tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(999)"
    with PostgresServer():
        subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
        pathlib.Path(__file__).with_name("up").touch()
        threading.Event().wait()
"""

DRIVER = """
import itertools, pathlib, subprocess, sys, threading

def test_that_hangs():
    here = pathlib.Path(__file__).parent
    with (here / "out").open("wb") as out:
        run = ["run", str(here / "endless.py"), "--tap", "numbers", "--master", "local[2]"]
        subprocess.Popen([sys.executable, "-m", "sparkstorm", *run], stdout=out)
    while not (here / "out").stat().st_size:
        threading.Event().wait(0.1)
    (here / "up").touch()
    threading.Event().wait()
"""

ENDLESS = """
import itertools
import sparkstorm as ss

class Pass(ss.BasicBolt):
    def execute(self, tup, collector):
        pass

builder = ss.TopologyBuilder()
builder.set_spout("numbers", ss.spouts.IteratorSpout(itertools.count, outputs="n long"))
builder.set_bolt("pass", Pass()).shuffle_grouping("numbers")
topology = builder.create_topology()
"""


class TestRun:
    """A run of pytest, whose processes are known by an entry in their environment."""

    __test__ = False

    def __init__(self, folder: Path, source: str, *options: str) -> None:
        test = folder / "test_hanging.py"
        test.write_text(source)
        self._up = folder / "up"
        self._entry = f"TEST_RUN={uuid.uuid4()}"
        name, _, value = self._entry.partition("=")
        # The configuration and the conftest are those of the tests here.
        command = [
            "pytest",
            "-c",
            ROOT / "pyproject.toml",
            "-p",
            "tests.conftest",
            *options,
            test,
        ]
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *map(str, command)],
                stdout=said,
                stderr=said,
                env={**os.environ, name: value, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )

    def wait_until_it_hangs(self) -> None:
        def check() -> None:
            assert self.process.poll() is None, self._up.with_name("said").read_text()

        wait_until(self._up.exists, check=check)

    def living(self) -> dict[int, str]:
        """The processes of the run, and what each was started as."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._entry.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        return found

    def worker(self) -> int:
        """The process of the one worker of xdist."""
        [worker] = [pid for pid, command in self.living().items() if "exec(eval(" in command]
        return worker

    def check_nothing_lives(self) -> None:
        """It is waited for, since a process does not end at once."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: self.process.poll() is not None and not self.living(), secs=10)
        assert self.living() == {}


def interrupt(run: TestRun) -> None:
    """As Ctrl-C does: the signal goes to all processes in the terminal's foreground."""
    os.killpg(run.process.pid, signal.SIGINT)


def kill(run: TestRun) -> None:
    run.process.kill()


def kill_the_worker(run: TestRun) -> None:
    os.kill(run.worker(), signal.SIGKILL)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., TestRun]]:
    """Start pytest on a test, and wait until that hangs."""
    runs: list[TestRun] = []

    def start(source: str, *options: str) -> TestRun:
        runs.append(TestRun(tmp_path, source, *options))
        runs[-1].wait_until_it_hangs()
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ([], interrupt),
        (["-n1"], kill),
        (["-n1"], kill_the_worker),
    ],
    ids=["interrupt", "kill", "kill a worker"],
)
def test_a_server_ends_with_its_test(
    started: Callable[[PostgresServer], PostgresServer],
    start: Callable[..., TestRun],
    options: list[str],
    end: Callable[[TestRun], None],
) -> None:
    """So does a child that ignores requests to end, in a session of its own."""
    with started(PostgresServer()):
        pass  # it can be started here
    run = start(SERVER, *options)
    assert len(run.living()) >= 4
    end(run)
    run.check_nothing_lives()


@pytest.mark.spark
@pytest.mark.parametrize("end", [pytest.param(interrupt, marks=pytest.mark.slow), kill])
def test_a_driver_ends_with_its_test(
    start: Callable[..., TestRun], tmp_path: Path, end: Callable[[TestRun], None]
) -> None:
    """And so do its JVM and the Python processes of that."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    run = start(DRIVER)
    assert any("java" in command for command in run.living().values())
    end(run)
    run.check_nothing_lives()
