"""Objects that stay themselves when a topology is copied, as a server outside of it would."""

import uuid
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["Shared"]

_LIVE: "WeakValueDictionary[str, Shared]" = WeakValueDictionary()


class Shared:
    """Base of what a component in the test's hands and its copies in the tasks have in common.

    A copy by pickle, within this process, is the object itself; in another one it is None, since
    nothing that is asked for there is in its reach.
    """

    def __init__(self) -> None:
        self._key = uuid.uuid4().hex
        _LIVE[self._key] = self

    def __reduce__(self) -> Any:
        return _find, (self._key,)


def _find(key: str) -> Shared | None:
    return _LIVE.get(key)
