"""Identities: the same name for a message at each delivery, for a queue that gives it none.

RabbitMQ knows a message only by its delivery tag, which is new at each delivery. Messages of one
content (payload and properties) are as good as each other. So a message is named by its content and
a number, and a redelivery takes the name of any lost message of its content.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias, final

__all__ = ["Identities", "Identity"]

Identity: TypeAlias = tuple[str, int]
"""A message's content, as a digest, and its number among the messages of the same content."""

_MOST_LOST = 200_000
"""So many lost messages are known; twice what the lease keeper remembers of settled ones."""


@final
@dataclass(slots=True)
class _Twins:
    """The numbers of the messages of one content."""

    most: int = 0
    spare: list[int] = field(default_factory=list)
    lost: dict[int, None] = field(default_factory=dict)


@final
class Identities:
    """Names the deliveries of one consumer, over all its connections.

    >>> known = Identities()
    >>> known.name("a", redelivered=False), known.name("a", redelivered=False)
    (('a', 1), ('a', 2))
    >>> known.lose()
    >>> known.name("a", redelivered=False), known.name("a", redelivered=True)
    (('a', 3), ('a', 1))
    """

    def __init__(self, most_lost: int = _MOST_LOST) -> None:
        self._twins: dict[str, _Twins] = {}
        self._in_hand: dict[Identity, None] = {}
        self._lost: dict[Identity, None] = {}
        self._most_lost = most_lost

    def __len__(self) -> int:
        return len(self._in_hand) + len(self._lost)

    def name(self, content: str, *, redelivered: bool) -> Identity:
        """Return the name of a delivery.

        A first delivery never gets a name that is in use: its message is surely another one.
        """
        twins = self._twins.get(content)
        if twins is None:
            twins = self._twins[content] = _Twins()
        if redelivered and twins.lost:
            number = next(iter(twins.lost))
            del twins.lost[number], self._lost[content, number]
        elif twins.spare:
            number = heappop(twins.spare)
        else:
            number = twins.most = twins.most + 1
        self._in_hand[content, number] = None
        return content, number

    def free(self, identities: Iterable[Identity]) -> None:
        """Note that messages are settled, or given back: their names are free."""
        for identity in identities:
            if identity in self._in_hand:
                del self._in_hand[identity]
                self._spare(identity)

    def lose(self) -> None:
        """Note that the connection is lost: the messages in hand will be delivered again."""
        for identity in self._in_hand:
            content, number = identity
            self._twins[content].lost[number] = None
            self._lost[identity] = None
        self._in_hand.clear()
        while len(self._lost) > self._most_lost:
            oldest = content, number = next(iter(self._lost))
            del self._lost[oldest], self._twins[content].lost[number]
            self._spare(oldest)

    def _spare(self, identity: Identity) -> None:
        content, number = identity
        twins = self._twins[content]
        heappush(twins.spare, number)
        if len(twins.spare) == twins.most:
            del self._twins[content]
