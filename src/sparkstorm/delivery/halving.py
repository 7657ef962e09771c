"""Finding the message that kills a batch: leave out half, and half again."""

from collections.abc import Sequence
from typing import final

from sparkstorm.acking.tally import RootRange

__all__ = ["Halving"]


@final
class Halving:
    """What to leave out when a batch's job failed, attempt by attempt.

    The first failure is tried again whole: most failures are of the world, not of a message. After
    that only half of what was tried last is tried again, and so on down to one message. If that
    one fails alone, it is a poison, and all the others are tried without it; after ``max_poisons``
    of them nothing is, since then it is hardly the messages. What was left out of the attempt that
    succeeds is lost and comes back in later batches.

    >>> halving = Halving([RootRange(0, 4)], whole_retries=0)
    >>> halving.failed()
    (RootRange(first=2, count=2),)
    >>> halving.failed()
    (RootRange(first=1, count=3),)
    >>> halving.failed(), halving.poisons
    ((RootRange(first=0, count=1),), (RootRange(first=0, count=1),))
    """

    def __init__(
        self, ranges: Sequence[RootRange], whole_retries: int = 1, max_poisons: int = 2
    ) -> None:
        self._suspects = tuple(sorted(ranges))
        self._tried = self._suspects
        self._whole_retries = whole_retries
        self._max_poisons = max_poisons
        self.poisons: tuple[RootRange, ...] = ()

    @property
    def tried(self) -> int:
        """How many messages the next attempt tries."""
        return sum(span.count for span in self._tried)

    def failed(self) -> tuple[RootRange, ...]:
        """Note that the last attempt failed; return what the next one leaves out."""
        if self._whole_retries:
            self._whole_retries -= 1
        elif self.tried == 1:
            self._take_out(self._tried)
        else:
            self._tried = _first(self._tried, -(-self.tried // 2))
        return tuple(sorted((*self.poisons, *_without(self._suspects, self._tried))))

    def _take_out(self, poison: tuple[RootRange, ...]) -> None:
        """Part with a message that failed alone: it is the first of the suspects."""
        self.poisons += poison
        self._suspects = _without(self._suspects, poison)
        self._tried = self._suspects if len(self.poisons) < self._max_poisons else ()


def _first(ranges: Sequence[RootRange], count: int) -> tuple[RootRange, ...]:
    taken = []
    for span in ranges:
        size = min(span.count, count)
        if size:
            taken.append(RootRange(span.first, size))
        count -= size
    return tuple(taken)


def _without(ranges: Sequence[RootRange], kept: Sequence[RootRange]) -> tuple[RootRange, ...]:
    """The rest of ranges whose beginnings are kept."""
    sizes = {span.first: span.count for span in kept}
    rest = []
    for span in ranges:
        size = sizes.get(span.first, 0)
        if size < span.count:
            rest.append(RootRange(span.first + size, span.count - size))
    return tuple(rest)
