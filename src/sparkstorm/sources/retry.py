"""The retry policy: when a failed message is tried again, and when it is given up."""

from dataclasses import dataclass
from typing import final

from sparkstorm.acking.ids import mix64_of
from sparkstorm.config import Config
from sparkstorm.verdicts import Failure

__all__ = ["RetryPolicy"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential backoff with jitter, a cap and a limit; a pure function of its arguments.

    >>> policy = RetryPolicy(first_secs=1.0, max_secs=60.0, max_retries=3)
    >>> policy.delay(attempt=1, key=7) is not None, policy.delay(attempt=4, key=7)
    (True, None)
    """

    first_secs: float
    max_secs: float
    max_retries: int | None

    @classmethod
    def of(cls, config: Config) -> "RetryPolicy":
        """Return the policy that a configuration asks for."""
        return cls(
            first_secs=config.retry_backoff_secs,
            max_secs=config.retry_backoff_max_secs,
            max_retries=config.max_retries,
        )

    def wait(self, failure: Failure, *, attempt: int, key: int) -> float | None:
        """Return the seconds until the next try after a failure, or None after the last try.

        A final failure is not tried again; an uncounted failure uses up no try.
        """
        if failure.final:
            return None
        if not failure.counted:
            return self.pause(attempt=attempt, key=key)
        return self.delay(attempt=attempt, key=key)

    def delay(self, *, attempt: int, key: int) -> float | None:
        """Return the seconds to wait after the failure of an attempt (from 1), or None to give up.

        Args:
            attempt: the attempt that failed.
            key: any number. Messages that failed together spread by their keys over the last
            quarter
                of the wait.
        """
        if self.max_retries is not None and attempt > self.max_retries:
            return None
        return self.pause(attempt=attempt, key=key)

    def pause(self, *, attempt: int, key: int) -> float:
        """Return the seconds to wait after the failure of an attempt, whatever the limit."""
        doublings = min(attempt - 1, 62)
        wait = min(self.first_secs * 2.0**doublings, self.max_secs)
        scattered = mix64_of(key + attempt & (1 << 64) - 1)
        return wait * (1.0 - 0.25 * scattered / 2.0**64)
