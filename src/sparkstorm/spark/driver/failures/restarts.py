"""Decide when to restart a query after Spark ended it."""

from dataclasses import replace
from typing import final

from sparkstorm.config import Config
from sparkstorm.sources.retry import RetryPolicy

__all__ = ["Restarts"]

_LONGEST_WAIT_SECS = 60.0
_LONGEST_PATIENT_WAIT_SECS = 15.0


@final
class Restarts:
    """Counts restarts, and says how long to wait before the next; takes the time as an argument.

    The count begins anew after the query was healthy for long enough. Health begins when the query
    first asks for a new batch: then the batch on which it failed is done.

    Failures that go away by themselves have no count but a time limit: from the first of them until
    the next healthy moment.

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
        self._patient = replace(self._policy, max_secs=_LONGEST_PATIENT_WAIT_SECS, max_retries=None)
        self.patience_secs = config.query_restart_patience_secs
        self._window_secs = config.query_restart_window_secs
        self._healthy_since: float | None = None
        self._patient_since: float | None = None
        self._patient_count = 0

    def note_healthy(self, now: float) -> None:
        """Note that the query asked for a new batch."""
        if self._healthy_since is None:
            self._healthy_since = now

    def wait_after_failure(self, now: float) -> float | None:
        """Count a failure; return the seconds to wait before the restart, or None to give up."""
        self._end_of_health(now)
        self.count += 1
        return self._policy.delay(attempt=self.count, key=self.count)

    def wait_patiently(self, now: float) -> float | None:
        """Return the seconds to wait after a failure that goes away by itself; None to give up."""
        self._end_of_health(now)
        if self._patient_since is None:
            self._patient_since, self._patient_count = now, 0
        if now - self._patient_since >= self.patience_secs:
            return None
        self._patient_count += 1
        return self._patient.pause(attempt=self._patient_count, key=self._patient_count)

    def _end_of_health(self, now: float) -> None:
        if self._healthy_since is None:
            return
        if now - self._healthy_since >= self._window_secs:
            self.count = 0
        self._healthy_since = self._patient_since = None
