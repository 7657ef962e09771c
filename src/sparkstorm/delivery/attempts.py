"""What a hosted task knows of messages that failed, until they are acked or given up."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from sparkstorm.delivery.originals import Original

__all__ = ["Attempts", "FailedMessage"]

_MOST_MESSAGES = 100_000
"""A spout may never emit a failed message again, nor give it up."""

_MOST_BYTES = 64 * 1024 * 1024


@final
@dataclass(slots=True)
class FailedMessage:
    """A message whose last attempt failed.

    Attributes:
        attempts: how many attempts there were.
        began: when the first one began, in seconds since 1970.
        original: the message as it was emitted; None if it was dropped to save memory.
        nbytes: about how much memory that takes.
    """

    attempts: int
    began: float
    original: Original | None
    nbytes: int


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

    @property
    def left_failed(self) -> int:
        """How many have not been emitted again."""
        return len(self._left_failed)

    @property
    def nbytes(self) -> int:
        """About how much memory their payloads take."""
        return self._bytes

    def next_of(self, msg_id: Hashable) -> int:
        """The number of a message's next attempt, from 1."""
        known = self._failed.get(msg_id)
        return 1 if known is None else known.attempts + 1

    def emitted(self, msg_id: Hashable) -> None:
        """Note that a message is emitted, perhaps again."""
        self._left_failed.discard(msg_id)

    def failed(self, msg_id: Hashable, original: Original, nbytes: int) -> FailedMessage:
        """Note that an attempt failed."""
        before = self.forget(msg_id)
        known = FailedMessage(
            attempts=1 if before is None else before.attempts + 1,
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
        return self._failed.pop(msg_id, None)

    def _trim(self) -> None:
        while self._bytes > self._most_bytes and len(self._whole) > 1:
            oldest = next(iter(self._whole))
            self._bytes -= self._whole.pop(oldest)
            self._failed[oldest].original = None
        while len(self._failed) > self._most:
            self.forget(next(iter(self._failed)))
