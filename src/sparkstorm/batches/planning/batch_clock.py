"""The clock of batches: windows and state with a time to live go by its times."""

from typing import final

from sparkstorm.clock import Clock
from sparkstorm.texts.logs import logger_of

__all__ = ["BatchClock"]

_SLACK_SECS = 5.0
"""The difference between the clocks of two machines that nobody needs to hear of."""

_logger = logger_of(__name__)


@final
class BatchClock:
    """Seconds since 1970 that never fall, and never jump while a driver lives.

    A window closed at a wrong time stays closed. So the batch clock reads the wall clock once, at
    the start, and goes by the monotonic clock from there on. A wall clock that was set meanwhile,
    or a machine that slept, shows at the next start.

    Args:
        clock: the time.
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
            last: the batch's time; 0 if its plan has no time: then now.
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
