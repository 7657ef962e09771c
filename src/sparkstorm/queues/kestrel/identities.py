"""The identities of items: Kestrel's memcache protocol gives an item no name."""

import hashlib
import itertools
import math
from collections import deque
from typing import NamedTuple, final

__all__ = ["Identities", "ItemName"]

_KNOWN_AGAIN_SECS = 60.0
"""So long after a server is back its items are known again; then equal items are new."""


class ItemName(NamedTuple):
    """An item's server, a digest of its content, and a number of its own."""

    server: str
    digest: str
    number: int


@final
class Identities:
    """Names items by their server, their content and a number.

    Items that were open when a connection was lost come again. They are known again by their
    content, so that no second copy runs. Items of equal content are interchangeable meanwhile.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lost: dict[str, dict[str, deque[ItemName]]] = {}
        self._until: dict[str, float] = {}

    def name(self, server: str, body: bytes, now: float) -> ItemName:
        """Return the name of an item that was just opened."""
        if now > self._until.get(server, math.inf):
            self._lost.pop(server, None)
        digest = hashlib.sha1(body, usedforsecurity=False).hexdigest()
        known = self._lost.get(server, {}).get(digest)
        if known:
            return known.popleft()
        return ItemName(server, digest, next(self._numbers))

    def lose(self, item: ItemName) -> None:
        """Note that the connection of an open item is gone."""
        self._lost.setdefault(item.server, {}).setdefault(item.digest, deque()).append(item)

    def regain(self, server: str, now: float) -> None:
        """Note that a server is back: the server hands out lost items before long."""
        self._until[server] = now + _KNOWN_AGAIN_SECS
