"""Time as an argument: code that needs the time is given a :class:`Clock`."""

import time
from typing import Protocol, final

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """The source of time; tests pass :class:`sparkstorm.testing.ManualClock`."""

    def monotonic(self) -> float:
        """Return seconds that only go forward, for time-outs and durations."""
        ...

    def wall(self) -> float:
        """Return seconds since 1970, for people; never for durations."""
        ...


@final
class SystemClock:
    """The machine's own time."""

    def monotonic(self) -> float:
        """Return the seconds of :func:`time.monotonic`."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the seconds of :func:`time.time`."""
        return time.time()
