"""Numbers and times as the pages write them."""

import math
from datetime import datetime

__all__ = ["at_clock", "count", "for_machines", "percent", "rate", "secs"]

_NONE = "–"


def count(number: float | None) -> str:
    """Return a count with its thousands apart.

    >>> count(12345), count(None)
    ('12,345', '–')
    """
    if number is None or not math.isfinite(number):
        return _NONE
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


def secs(length: float | None) -> str:
    """Return a length of time, in the unit that suits it.

    >>> [secs(length) for length in (None, 0.0000042, 0.31, 12.25, 600, 7200, 400_000)]
    ['–', '4 µs', '310 ms', '12.2 s', '10 min', '2.0 h', '4.6 d']
    """
    if length is None or not math.isfinite(length):
        return _NONE
    for most, factor, digits, unit in (
        (0.001, 1e6, 0, "µs"),
        (1, 1e3, 0 if abs(length) >= 0.01 else 1, "ms"),
        (90, 1, 1, "s"),
        (5400, 1 / 60, 0, "min"),
        (129_600, 1 / 3600, 1, "h"),
    ):
        if abs(length) < most:
            return f"{length * factor:.{digits}f} {unit}"
    return f"{length / 86_400:.1f} d"


def rate(number: float | None) -> str:
    """Return a count per second.

    >>> [rate(number) for number in (None, 0, 0.4, 420.2, 12_000)]
    ['–', '0/s', '0.4/s', '420/s', '12k/s']
    """
    if number is None or not math.isfinite(number):
        return _NONE
    if number >= 10_000:
        return f"{number / 1000:.0f}k/s"
    return f"{number:.1f}/s" if 0 < number < 10 else f"{number:.0f}/s"


def percent(share: float | None) -> str:
    """Return a share.

    >>> [percent(share) for share in (None, 0.847, 0.002)]
    ['–', '85 %', '0.2 %']
    """
    if share is None or not math.isfinite(share):
        return _NONE
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def at_clock(at: float | None) -> str:
    """Return a moment by the clock of this machine.

    >>> at_clock(None), at_clock(1e30)
    ('–', '–')
    """
    moment = _moment(at)
    return _NONE if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def for_machines(at: float | None) -> str:
    """Return a moment as the ``datetime`` of a ``time`` element."""
    moment = _moment(at)
    return "" if moment is None else moment.isoformat()


def _moment(at: float | None) -> datetime | None:
    try:
        return None if at is None else datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):  # no time that a calendar knows
        return None
