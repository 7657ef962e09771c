"""A word count whose parts are killed at random moments loses nothing and counts exactly."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from sparkstorm.errors import EnvironmentFault

pytestmark = pytest.mark.e2e

_KILL_LOOP = Path(__file__).with_name("kill_loop.py")


def kill_loop(
    absent: Callable[[str], NoReturn], folder: Path, *options: str, secs: int
) -> dict[str, object]:
    """Run the loop with a seed of its own, which its output shows; return its last line."""
    from sparkstorm.spark.driver.session import check_java

    try:
        check_java()
    except EnvironmentFault as fault:
        absent(str(fault))
    seed = str(random.randrange(10**6))
    command = [sys.executable, str(_KILL_LOOP), str(folder / "run"), "--seed", seed, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=secs, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_word_count(absent: Callable[[str], NoReturn], tmp_path: Path) -> None:
    """Every line is processed, every count is that of the lines, whatever was killed when."""
    options = ["--lines", "1000", "--pause", "4", "--victims", "worker,worker,driver"]
    answer = kill_loop(absent, tmp_path, *options, secs=280)
    assert answer["killed"]


@pytest.mark.slow
def test_a_word_count_from_a_queue(absent: Callable[[str], NoReturn], tmp_path: Path) -> None:
    """The source is a process of its own, and killed, too: no line is lost."""
    options = ["--lines", "1500", "--pause", "4", "--victims", "source,source,worker,driver"]
    answer = kill_loop(absent, tmp_path, *options, secs=280)
    assert answer["killed"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "victims", ["worker,worker,executor,executor,driver,jvm", "source,worker,executor,driver"]
)
def test_everything_for_minutes(
    absent: Callable[[str], NoReturn], tmp_path: Path, victims: str
) -> None:
    """The same with executors on a cluster in this machine, many times."""
    answer = kill_loop(
        absent,
        tmp_path,
        *("--lines", "20000", "--master", "local-cluster[2,1,1024]", "--minutes", "15"),
        *("--victims", victims),
        secs=1100,
    )
    assert answer["killed"]
