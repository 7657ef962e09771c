"""Keys and names of a state: refused at once if the state could not find them again."""

import math
import pickle
from typing import Any

from sparkstorm.state.kept import ATOMS
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import is_of_value, message_of

__all__ = ["check_key", "check_name", "check_ttl"]


def check_key(key: Any) -> None:
    """Refuse a key that the batch could not write, or the next batch not read.

    Raises:
        TypeError: the key cannot be pickled, read again, hashed or compared.
    """
    if type(key) in ATOMS or (type(key) is tuple and ATOMS.issuperset(map(type, key))):
        return
    try:
        copy = pickle.loads(pickle.dumps(key, pickle.HIGHEST_PROTOCOL))  # noqa: S301 - our own
        _ = (
            hash(key),
            hash(copy),
            copy == key,
        )  # the answers do not matter, only that there are some
    except BaseException as error:  # of any user's class
        if not is_of_value(error):
            raise
        raise TypeError(f"{shown(key)} cannot be a key of a state: {message_of(error)}") from error


def check_name(name: Any) -> None:
    """Refuse a name that cannot name a state.

    Raises:
        TypeError: the name is no text.
        ValueError: the text has no UTF-8.
    """
    if not issubclass(type(name), str):
        raise TypeError(f"a state is named by text, not by {shown(name)}")
    name.encode()


def check_ttl(secs: Any) -> None:
    """Refuse an impossible time to live.

    Raises:
        ValueError: the value is neither None nor a number of seconds above 0.
    """
    number = issubclass(type(secs), int | float) and 0 < secs < math.inf
    if secs is not None and not number:
        raise ValueError(f"ttl_secs is a number of seconds above 0, not {shown(secs)}")
