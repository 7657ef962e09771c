"""Time as an argument: whoever needs the time is handed a :class:`Clock`."""

import time
from typing import Protocol, final

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Where the time comes from; tests hand in :class:`sparkstorm.testing.ManualClock`."""

    def monotonic(self) -> float:
        """Seconds that only go forward; for time-outs and durations."""
        ...

    def wall(self) -> float:
        """Seconds since 1970; for what people read, never for durations."""
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
