"""The time of batches, which bolts trust with windows and with state that expires."""

from typing import final

from sparkstorm.clock import Clock
from sparkstorm.texts.logs import logger_of

__all__ = ["BatchClock"]

_SLACK_SECS = 5.0
"""By so much clocks of two machines may differ without anybody being told."""

_logger = logger_of(__name__)


@final
class BatchClock:
    """Seconds since 1970 that never fall, and never jump while a driver lives.

    What was closed or removed at a wrong time stays so. So the wall clock is read once, at the
    start; from there on goes the monotonic one. A clock that was set meanwhile, or a machine that
    slept, shows at the next start.

    Args:
        clock: where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.wall() - clock.monotonic()
        self._last = 0.0

    def now(self) -> float:
        """Return the time of a batch that is planned now."""
        self._last = max(self._last, self._offset + self._clock.monotonic())
        return self._last

    def go_on(self, last: float) -> float:
        """Go on after the last batch of an earlier driver; return the time of that batch.

        Args:
            last: its time; 0 if it was planned when plans had none: it is taken for now then.
        """
        behind = last - self.now()
        if behind > 0:
            self._offset += behind
            self._last = last
        if behind > _SLACK_SECS:
            _logger.warning(
                "the clock is %.0f s behind the time of the last batch: it is slow now, or was "
                "fast when that batch was planned. Batches go on from the time of that one, so "
                "that windows and state with a time to live go on, too",
                behind,
            )
        return last or self.now()
