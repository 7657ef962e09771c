"""Blame: the tries of messages, and the suspects of a driver's death.

A message's tries outlive its driver. A hosted message comes again from its source, and only
``msg_id`` shows that the message is the same. So a plan has its tries under a digest of the id
(:class:`Attempts`). A split of a partitioned spout has its tries in :class:`Outstanding`.

A driver writes tries down for two kinds of message: messages that have failed, and *suspects*. A
suspect was in the batch that ran when a driver died, so it may have killed the driver. Its *width*
is the number of messages that ran beside it. Suspects run again in ever smaller company
(:func:`company_of`), until the culprit runs alone. Only then a death counts, so no neighbour ever
pays for the culprit.
"""

import base64
import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from sparkstorm.sources.originals import Original
from sparkstorm.verdicts import Failure, Reason

__all__ = [
    "DIED_OF_IT",
    "FIRST_TRY",
    "Attempts",
    "FailedMessage",
    "Tries",
    "company_of",
    "decode_tries",
    "digest_of",
    "digests_of",
    "encode_tries",
]

_CUT = 8
"""The number of pieces of a batch that a driver died of."""

DIED_OF_IT = Failure(
    reason=Reason.LOST,
    message="the driver has died while this message alone was running",
    final=True,
)
"""The failure of a message that was alone when a driver died, and has no try left."""

_ROW = np.dtype([("digest", "<u8"), ("attempt", "<u4"), ("width", "<u4")])


@final
class Tries(NamedTuple):
    """The tries of a message: its id's digest, its next attempt, its width if suspected."""

    digest: int
    attempt: int = 1
    width: int = 0


FIRST_TRY = Tries(0)
"""The tries of a message without a history."""


def digest_of(msg_id: Hashable) -> int:
    """Return 64 bits that identify a message, the same in every process.

    The bits come from the ``repr`` of the id. An id whose repr differs from process to process,
    because it shows an address or the order of a set, is not known again.

    >>> digest_of(("queue", 7)) == digest_of(("queue", 7)) != digest_of(("queue", "7"))
    True
    """
    try:
        text = repr(msg_id).encode(errors="backslashreplace")
    except BaseException:  # noqa: BLE001 - an id is of any class: this one starts anew each time
        text = f"{type(msg_id).__name__} {id(msg_id)}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def company_of(width: int) -> int:
    """Return how many suspects of this width may run together.

    >>> company_of(1000), company_of(125), company_of(16), company_of(1)
    (125, 16, 2, 1)
    """
    return -(-width // _CUT)


def encode_tries(tries: Iterable[Tries]) -> str:
    """Return tries as text for :func:`decode_tries`."""
    return base64.b64encode(np.array(list(tries), _ROW).tobytes()).decode()


def decode_tries(text: str) -> list[Tries]:
    """Return the tries of :func:`encode_tries`'s text."""
    rows: list[tuple[int, int, int]] = np.frombuffer(base64.b64decode(text), _ROW).tolist()
    return [Tries(*row) for row in rows]


def digests_of(msg_ids: Iterable[Hashable]) -> bytes:
    """Return the digests of several ids, as an array's bytes."""
    return np.array([digest_of(msg_id) for msg_id in msg_ids], np.uint64).tobytes()


_MOST_MESSAGES = 100_000
"""The limit of failed messages: a spout may never emit a failed message again, nor give it up."""

_MOST_BYTES = 64 * 1024 * 1024


@final
@dataclass(slots=True)
class FailedMessage:
    """A message whose last attempt failed.

    Attributes:
        next: the tries of a later attempt; width 1 if the message may run no more, since it killed
        a
            driver when it was alone.
        began: when the first attempt began, in seconds since 1970.
        original: the message as it was emitted; None if it was dropped to save memory.
        nbytes: the memory of the original, about.
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
    """The failed messages of a hosted task by their ids; bounded, the oldest are forgotten first.

    The payload goes first: a spout that gives a message up long after the failure gets a dead
    letter without payload. Much later the count of attempts goes, too.
    """

    def __init__(self, most: int = _MOST_MESSAGES, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._failed: dict[Hashable, FailedMessage] = {}
        self._whole: dict[Hashable, int] = {}
        self._bytes = 0
        self._left_failed: dict[Hashable, None] = {}
        self._earlier: dict[int, Tries] = {}
        self._inherited: dict[Hashable, Tries] = {}

    def remember(self, earlier: dict[int, Tries]) -> None:
        """Remember the tries under an earlier driver, by digest."""
        self._earlier = earlier

    def known(self) -> list[Tries]:
        """Return all tries for a later driver; callable from any thread."""
        failed = [known.next for known in list(self._failed.values())]
        return failed + list(self._inherited.values()) + list(self._earlier.values())

    @property
    def left_failed(self) -> int:
        """How many failed messages have not been emitted again."""
        return len(self._left_failed)

    def get(self, msg_id: Hashable) -> FailedMessage | None:
        """Return a message that has failed before; None for any other."""
        return self._failed.get(msg_id)

    def began(self, msg_id: Hashable) -> float | None:
        """Return when the first attempt of a failed message began; None for any other."""
        known = self.get(msg_id)
        return None if known is None else known.began

    def resting(self) -> list[tuple[Hashable, FailedMessage]]:
        """Return the failed messages that have not been emitted again; callable by any thread."""
        found = ((msg_id, self._failed.get(msg_id)) for msg_id in list(self._left_failed))
        return [(msg_id, known) for msg_id, known in found if known is not None]

    @property
    def nbytes(self) -> int:
        """The memory of all payloads, about."""
        return self._bytes

    def emitted(self, msg_id: Hashable) -> Tries:
        """Note that a message is emitted, perhaps again; return its tries."""
        self._left_failed.pop(msg_id, None)
        return self._tries_of(msg_id)

    def failed(
        self, msg_id: Hashable, original: Original, nbytes: int, *, ran: bool = True
    ) -> FailedMessage:
        """Note a failed attempt; without ``ran``, only a message's guilt under earlier drivers."""
        tries = self._tries_of(msg_id)
        before = self.forget(msg_id)
        known = FailedMessage(
            next=Tries(tries.digest or digest_of(msg_id), tries.attempt + 1) if ran else tries,
            began=original.began if before is None else before.began,
            original=original,
            nbytes=nbytes,
        )
        self._failed[msg_id] = known
        self._left_failed[msg_id] = None
        self._whole[msg_id] = nbytes
        self._bytes += nbytes
        self._trim()
        return known

    def forget(self, msg_id: Hashable) -> FailedMessage | None:
        """Note that a message has ended; return its failures, if there were any."""
        self._left_failed.pop(msg_id, None)
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
