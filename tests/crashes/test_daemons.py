"""A run whose Python daemons are killed as they start goes on, and counts exactly."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("master", ["local[4]", "local-cluster[2,1,1024]"])
def test_daemons_that_are_killed_as_they_start(
    run_loop: Callable[..., dict[str, Any]], master: str
) -> None:
    """Every message is acked and counted once, whenever a daemon died."""
    options = ["--messages", "200000", "--master", master]
    done = run_loop("daemon_loop.py", *options, secs=3500)
    assert done["acked"] == 200_000
    assert done["killed"]["starting"]
