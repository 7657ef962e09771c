"""Objects that stay themselves when a topology is copied, as a server outside of it would."""

import uuid
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["Shared"]

_LIVE: "WeakValueDictionary[str, Shared]" = WeakValueDictionary()


class Shared:
    """Base class of objects that a test and its components' copies have in common.

    In this process pickle copies only the reference: each copy is the object itself. In another
    process the copy is None, because the object is out of reach there.
    """

    def __init__(self) -> None:
        self._key = uuid.uuid4().hex  # not id(): it may come again after this object has gone
        _LIVE[self._key] = self

    def __reduce__(self) -> Any:
        return _find, (self._key,)


def _find(key: str) -> Shared | None:
    return _LIVE.get(key)
