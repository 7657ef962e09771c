"""Values in messages to people."""

import reprlib
from typing import Any

__all__ = ["named", "shown"]

_LONGEST = 200
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 4
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = _LONGEST
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = 10


def shown(value: Any) -> str:
    """Return what ``repr`` does, cut where it gets long; for any value, whatever its own does.

    >>> shown([1, "x"])
    "[1, 'x']"
    >>> shown(range(10**9))
    'range(0, 1000000000)'
    """
    try:
        text = _SHORT.repr(value)
    except BaseException:  # noqa: BLE001 - Python itself does not write out huge integers
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def named(value: Any) -> str:
    """Return the whole ``repr`` of what a user names things by; its type, if it has none.

    >>> named(("queue", 7))
    "('queue', 7)"
    """
    try:
        return "".join(("", repr(value)))  # a plain copy, if it is of a class of the user's
    except BaseException:  # noqa: BLE001 - it is user code
        return shown(value)
