"""When a query that Spark ended is started again."""

from typing import final

from sparkstorm.config import Config
from sparkstorm.delivery.retry import RetryPolicy

__all__ = ["Restarts"]

_LONGEST_WAIT_SECS = 60.0


@final
class Restarts:
    """Counts restarts, and says how long to wait before the next; takes the time as an argument.

    They are counted anew after the query was healthy for long enough. Its healthy time begins when
    it first asks for a new batch, since then it is done with the one it failed on.

    >>> restarts = Restarts(Config(query_max_restarts=1, query_restart_window_secs=60))
    >>> restarts.wait_after_failure(0.0) is None, restarts.wait_after_failure(1.0)
    (False, None)
    >>> restarts.note_healthy(2.0)
    >>> restarts.wait_after_failure(62.0) is None
    False
    """

    def __init__(self, config: Config) -> None:
        self.count = 0
        self._policy = RetryPolicy(
            first_secs=config.query_restart_backoff_secs,
            max_secs=_LONGEST_WAIT_SECS,
            max_retries=config.query_max_restarts,
        )
        self._window_secs = config.query_restart_window_secs
        self._healthy_since: float | None = None

    def note_healthy(self, now: float) -> None:
        """Note that the query asked for a new batch."""
        if self._healthy_since is None:
            self._healthy_since = now

    def wait_after_failure(self, now: float) -> float | None:
        """Count a failure; return the seconds to wait before the restart, None to give up."""
        healthy = 0.0 if self._healthy_since is None else now - self._healthy_since
        if healthy >= self._window_secs:
            self.count = 0
        self._healthy_since = None
        self.count += 1
        return self._policy.delay(attempt=self.count, key=self.count)
