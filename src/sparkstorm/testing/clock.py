"""A clock that moves only when the test moves it."""

from typing import final

__all__ = ["ManualClock"]


@final
class ManualClock:
    """A clock in the test's hands.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.monotonic()
    1.5
    """

    def __init__(self, start: float = 0.0, wall: float = 1_000_000_000.0) -> None:
        self._now = start
        self._wall = wall - start

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._now

    def wall(self) -> float:
        """Return the seconds since 1970, in the clock's own world."""
        return self._wall + self._now

    def set_wall(self, wall: float) -> None:
        """Set the wall clock alone, ahead or back, as an operator may set a machine's."""
        self._wall = wall - self._now

    def advance(self, secs: float) -> None:
        """Move the time forward.

        Raises:
            ValueError: ``secs`` is negative.
        """
        if secs < 0:
            msg = f"time only goes forward, not by {secs}"
            raise ValueError(msg)
        self._now += secs
