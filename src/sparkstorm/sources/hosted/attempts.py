"""What a hosted task knows of messages that failed, until they are acked or given up."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from sparkstorm.sources.blame import FIRST_TRY, Tries, digest_of
from sparkstorm.sources.hosted.originals import Original

__all__ = ["Attempts", "FailedMessage"]

_MOST_MESSAGES = 100_000
"""A spout may never emit a failed message again, nor give it up."""

_MOST_BYTES = 64 * 1024 * 1024


@final
@dataclass(slots=True)
class FailedMessage:
    """A message whose last attempt failed.

    Attributes:
        next: what a later attempt would be; of width 1 if it may run no more, since it has killed a
            driver when it was alone.
        began: when the first one began, in seconds since 1970.
        original: the message as it was emitted; None if it was dropped to save memory.
        nbytes: about how much memory that takes.
    """

    next: Tries
    began: float
    original: Original | None
    nbytes: int

    @property
    def attempts(self) -> int:
        """How many attempts there were, under earlier drivers too."""
        return self.next.attempt - 1


@final
class Attempts:
    """The failed messages of a task by their ids; bounded, the oldest are forgotten first.

    First the payload goes, so that a spout that gives up a message long after it failed gets a
    dead letter without it; much later the count of attempts goes, too.
    """

    def __init__(self, most: int = _MOST_MESSAGES, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._failed: dict[Hashable, FailedMessage] = {}
        self._whole: dict[Hashable, int] = {}
        self._bytes = 0
        self._left_failed: set[Hashable] = set()
        self._earlier: dict[int, Tries] = {}
        self._inherited: dict[Hashable, Tries] = {}

    def remember(self, earlier: dict[int, Tries]) -> None:
        """Take in what an earlier driver left behind, to know its messages again."""
        self._earlier = earlier

    def known(self) -> list[Tries]:
        """What a later driver is to know, should this one end; callable from any thread."""
        failed = [known.next for known in list(self._failed.values())]
        return failed + list(self._inherited.values()) + list(self._earlier.values())

    @property
    def left_failed(self) -> int:
        """How many have not been emitted again."""
        return len(self._left_failed)

    @property
    def nbytes(self) -> int:
        """About how much memory their payloads take."""
        return self._bytes

    def emitted(self, msg_id: Hashable) -> Tries:
        """Note that a message is emitted, perhaps again; return how it stands with it."""
        self._left_failed.discard(msg_id)
        return self._tries_of(msg_id)

    def failed(
        self, msg_id: Hashable, original: Original, nbytes: int, *, ran: bool = True
    ) -> FailedMessage:
        """Note that an attempt failed, or (not ``ran``) what it has done to earlier drivers."""
        tries = self._tries_of(msg_id)
        before = self.forget(msg_id)
        known = FailedMessage(
            next=Tries(tries.digest or digest_of(msg_id), tries.attempt + 1) if ran else tries,
            began=original.began if before is None else before.began,
            original=original,
            nbytes=nbytes,
        )
        self._failed[msg_id] = known
        self._left_failed.add(msg_id)
        self._whole[msg_id] = nbytes
        self._bytes += nbytes
        self._trim()
        return known

    def forget(self, msg_id: Hashable) -> FailedMessage | None:
        """Note that a message has ended; return what was known of it."""
        self._left_failed.discard(msg_id)
        self._bytes -= self._whole.pop(msg_id, 0)
        self._inherited.pop(msg_id, None)
        return self._failed.pop(msg_id, None)

    def _tries_of(self, msg_id: Hashable) -> Tries:
        known = self._failed.get(msg_id)
        if known is not None:
            return known.next
        tries = self._inherited.get(msg_id)
        if tries is None and self._earlier:
            digest = digest_of(msg_id)
            tries = self._earlier.get(digest)
            if tries is not None:  # in this order: `known` may be called in between
                self._inherited[msg_id] = tries
                self._earlier.pop(digest, None)
        return tries or FIRST_TRY

    def _trim(self) -> None:
        while self._bytes > self._most_bytes and len(self._whole) > 1:
            oldest = next(iter(self._whole))
            self._bytes -= self._whole.pop(oldest)
            self._failed[oldest].original = None
        while len(self._failed) > self._most:
            self.forget(next(iter(self._failed)))
