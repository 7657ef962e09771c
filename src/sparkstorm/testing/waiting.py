"""Wait for a condition of a running topology, instead of sleeping."""

import os
import time
from collections.abc import Callable

__all__ = ["PATIENCE_SECS", "wait_until"]

PATIENCE_SECS = float(os.environ.get("SPARKSTORM_PATIENCE_SECS", "60"))
"""How long tests wait at most for what has to happen; a slow machine sets the variable higher."""

_LOOK_SECS = 0.01


def wait_until(
    condition: Callable[[], object],
    *,
    secs: float = PATIENCE_SECS,
    check: Callable[[], object] | None = None,
) -> None:
    """Wait until a condition holds: Storm's ``Testing.whileTimeout``.

    Args:
        condition: called some hundred times a second.
        secs: the longest wait.
        check: called before each look; may raise an error that ends the wait.

    Raises:
        TimeoutError: the condition did not come to hold in time.

    >>> looks = iter([False, False, True])
    >>> wait_until(lambda: next(looks))
    >>> wait_until(lambda: False, secs=0.02)
    Traceback (most recent call last):
      ...
    TimeoutError: within 0.02 s the condition never came to hold
    """
    deadline = time.monotonic() + secs
    while not condition():
        if check is not None:
            check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"within {secs:g} s the condition never came to hold")
        time.sleep(_LOOK_SECS)
