"""Tell whether this machine has more work than cores."""

import os
from pathlib import Path

__all__ = ["overload"]

_TOO_MANY_PER_CORE = 2.0
_LOAD = Path("/proc/loadavg")


def overload() -> str | None:
    """Return a sentence for people if this machine is overloaded, else None."""
    return sentence(_wanting(), os.cpu_count() or 1)


def sentence(wanting: float, cores: int) -> str | None:
    """Return the sentence for a number of processes and a number of cores.

    >>> sentence(23.4, 4)
    'this machine is overloaded: 23 processes want its 4 cores'
    >>> sentence(7.9, 4) is None
    True
    """
    if wanting < _TOO_MANY_PER_CORE * cores:
        return None
    return f"this machine is overloaded: {wanting:.0f} processes want its {cores} cores"


def _wanting() -> float:
    """Return how many processes want a core.

    The number is the last minute's mean, or the present number if higher: when a burst begins, the
    mean is still low. Only Linux tells the present number.
    """
    if not _LOAD.exists():
        return os.getloadavg()[0]
    mean, _, _, running, _ = _LOAD.read_text().split()
    return max(float(mean), float(running.partition("/")[0]))
