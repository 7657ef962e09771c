"""A word count whose parts are killed at random moments loses nothing and counts exactly."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def test_a_word_count(run_loop: Callable[..., dict[str, Any]]) -> None:
    """Every line is processed, every count is that of the lines, whatever was killed when."""
    options = ["--lines", "1000", "--pause", "4", "--victims", "worker,worker,driver"]
    assert run_loop("kill_loop.py", *options, "--kills", "3")["killed"]


@pytest.mark.slow
def test_a_word_count_from_a_queue(run_loop: Callable[..., dict[str, Any]]) -> None:
    """The source is a process of its own, and killed, too: no line is lost."""
    options = ["--lines", "1500", "--pause", "4", "--victims", "source,source,worker,driver"]
    assert run_loop("kill_loop.py", *options)["killed"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "victims", ["worker,worker,executor,executor,driver,jvm", "source,worker,executor,driver"]
)
def test_everything_for_minutes(run_loop: Callable[..., dict[str, Any]], victims: str) -> None:
    """The same with executors on a cluster in this machine, many times."""
    options = ["--lines", "15000", "--master", "local-cluster[2,1,1024]", "--minutes", "51"]
    options += ["--pause", "90"]  # a life must be longer than starting two executors takes
    assert run_loop("kill_loop.py", *options, "--victims", victims, secs=3500)["killed"]
