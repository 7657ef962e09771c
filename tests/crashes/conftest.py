"""The programs here are started by the tests, or by hand with ``PYTHONPATH=.``."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing import PATIENCE_SECS

ROOT = Path(__file__).parents[2]

collect_ignore = [
    "bank.py",
    "bank_loop.py",
    "checker.py",
    "daemon_loop.py",
    "kill_loop.py",
    "processes.py",
    "queue_server.py",
    "queue_spout.py",
    "words.py",
]


@pytest.fixture
def run_loop(absent: Callable[[str], NoReturn], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a loop with a seed of its own, which its output shows; return its last line."""
    from sparkstorm.java import find_java

    try:
        find_java()
    except EnvironmentFault as fault:
        absent(str(fault))

    def run(program: str, *options: str, secs: float = 2 * PATIENCE_SECS) -> dict[str, Any]:
        path = Path(__file__).with_name(program)
        seed = str(random.randrange(10**6))
        command = [sys.executable, str(path), str(tmp_path / "run"), "--seed", seed, *options]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=secs, check=False, env=env
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return run
