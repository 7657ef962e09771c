"""A test that takes too long says where it stands, and nothing of other threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

HANGING = """
import signal, threading
from sparkstorm.testing import wait_until

def test_that_hangs():
    for _ in range(20):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    wait_until(lambda: False)
"""

DEAF = """
import signal, threading
from tests.tools import time_limits

time_limits._GRACE_SECS = 0.2

def test_that_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    threading.Event().wait()
"""


def run_pytest(folder: Path, source: str, *options: str) -> str:
    """Run a test with a limit of half a second; return what pytest printed."""
    test = folder / "test_hanging.py"
    test.write_text(source)
    command = ["pytest", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest", *options]
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command), "--timeout=0.5", str(test)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    return done.stdout + done.stderr


def test_a_test_that_hangs_shows_its_own_stack(tmp_path: Path) -> None:
    """From the test down to the line that waits; twenty other threads are not shown."""
    said = run_pytest(tmp_path, HANGING)
    told = said[said.index("not done after 0.5 s:") : said.index("short test summary")]
    assert "sparkstorm/testing/waiting.py" in told
    assert "time.sleep(_LOOK_SECS)" in told
    assert len(told.splitlines()) < 12, told
    assert "~~~" not in said


@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["alone", "in a worker"])
def test_a_test_that_cannot_be_interrupted_ends_its_process(
    tmp_path: Path, options: list[str]
) -> None:
    """It says where it hangs all the same."""
    said = run_pytest(tmp_path, DEAF, *options)
    told = said[said.index("test_that_hangs cannot be interrupted; it is here:") :]
    assert "in wait" in told
    assert "Thread" not in told
