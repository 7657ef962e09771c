"""Keys and names of a state: refused where they are put, if they could not be found again."""

import math
import pickle
from typing import Any

from sparkstorm.state.kept import ATOMS
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of

__all__ = ["check_key", "check_name", "check_ttl"]


def check_key(key: Any) -> None:
    """Refuse a key that cannot be written with the batch, or not be read with the next one.

    Raises:
        TypeError: it cannot be pickled, read again, hashed or compared.
    """
    if type(key) in ATOMS or (type(key) is tuple and ATOMS.issuperset(map(type, key))):
        return
    try:
        copy = pickle.loads(pickle.dumps(key, pickle.HIGHEST_PROTOCOL))  # noqa: S301 - our own
        _ = hash(key), hash(copy), copy == key  # that they can be asked is all that is asked
    except BaseException as error:  # of any user's class
        if not is_of_value(error):
            raise
        raise TypeError(f"{shown(key)} cannot be a key of a state: {message_of(error)}") from error


def check_name(name: Any) -> None:
    """Refuse what cannot name a state.

    Raises:
        TypeError: it is no text.
        ValueError: it is text that has no UTF-8.
    """
    if not issubclass(type(name), str):
        raise TypeError(f"a state is named by text, not by {shown(name)}")
    name.encode()


def check_ttl(secs: Any) -> None:
    """Refuse what is no time to live.

    Raises:
        ValueError: it is neither None nor a number of seconds above 0.
    """
    number = issubclass(type(secs), int | float) and 0 < secs < math.inf
    if secs is not None and not number:
        raise ValueError(f"ttl_secs is a number of seconds above 0, not {shown(secs)}")
