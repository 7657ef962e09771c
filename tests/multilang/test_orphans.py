"""However a run ends, none of its processes stays."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstorm.testing import wait_until

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent
CHILDREN = HERE.parent / "behaviour" / "children"


class Endless:
    """The program, and the processes that it told of."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            command = [sys.executable, str(HERE / "endless.py"), str(CHILDREN)]
            self.driver = subprocess.Popen(command, stdout=out, stderr=out)
        wait_until(lambda: "\nready" in log.read_text(), secs=120.0, check=self._check)
        told = dict(
            line.split(" ", 1)
            for line in log.read_text().splitlines()
            if line.startswith(("jvm ", "children "))
        )
        self.jvm = int(told["jvm"])
        self.children = [int(pid) for pid in told["children"].split()]

    def is_over(self) -> bool:
        return self.driver.poll() is not None and not any(map(is_running, self.children))

    def _check(self) -> None:
        assert self.driver.poll() is None, self._log.read_text()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Endless]:
    program = Endless(tmp_path / "log")
    yield program
    program.driver.kill()
    program.driver.wait()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda run: run.driver.kill(), id="kill the driver"),
        pytest.param(lambda run: os.kill(run.jvm, signal.SIGKILL), id="kill the JVM"),
        pytest.param(lambda run: run.driver.send_signal(signal.SIGINT), id="Ctrl-C"),
        pytest.param(lambda run: run.driver.terminate(), id="SIGTERM"),
    ],
)
def test_no_process_outlives_the_run(endless: Endless, end: Callable[[Endless], None]) -> None:
    """Bolts' children end with the JVM, spouts' with the driver."""
    assert all(map(is_running, endless.children))
    end(endless)
    wait_until(endless.is_over)
