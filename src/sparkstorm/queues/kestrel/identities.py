"""The identities of items: Kestrel's memcache protocol gives an item no name."""

import hashlib
import itertools
from collections import deque
from collections.abc import Hashable
from typing import final

__all__ = ["Identities"]

_KNOWN_AGAIN_SECS = 60.0
"""So long after a loss of connections their items are known again; then equal items are new."""


@final
class Identities:
    """Names items by their server, their content and a number.

    Items that were open when a connection was lost come again. They are known again by their
    content, so that no second copy runs. Items of equal content are interchangeable meanwhile.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lost: dict[tuple[str, str], deque[Hashable]] = {}
        self._until = 0.0

    def name(self, server: str, body: bytes, now: float) -> Hashable:
        """Return the name of an item that was just opened."""
        if now > self._until:
            self._lost.clear()
        digest = hashlib.sha1(body, usedforsecurity=False).hexdigest()
        known = self._lost.get((server, digest))
        if known:
            return known.popleft()
        return (server, digest, next(self._numbers))

    def lose(self, message_id: Hashable, now: float) -> None:
        """Note that the connection of an open item is gone."""
        server, digest, _ = message_id  # type: ignore[misc, attr-defined]
        self._lost.setdefault((server, digest), deque()).append(message_id)
        self._until = now + _KNOWN_AGAIN_SECS
