"""What a driver knows of hosted messages that outlive it, by a digest of their ids.

A hosted message comes again from its source, and only its ``msg_id`` tells that it is the same. So
how often it was tried is written down under a digest of that id. This covers two kinds of message:
those that have failed before, and *suspects*, which were in the batch that was running when a
driver died: one of them may have killed it. A suspect's *width* is the number of messages that ran
with it. Suspects run again in ever smaller company (:func:`company_of`), until the culprit is
alone; only then is a death counted against it, so none of its neighbours ever pays for it.
"""

import base64
import hashlib
from collections.abc import Hashable, Iterable
from typing import NamedTuple, final

import numpy as np

from sparkstorm.verdicts import Failure, Reason

__all__ = [
    "DIED_OF_IT",
    "FIRST_TRY",
    "Tries",
    "company_of",
    "decode_tries",
    "digest_of",
    "digests_of",
    "encode_tries",
]

_CUT = 8
"""A batch that a driver died of is run again in so many pieces."""

DIED_OF_IT = Failure(
    reason=Reason.LOST,
    message="the driver has died while this message alone was running",
    final=True,
)
"""How a message fails that was alone in a batch when a driver died, and has no try left."""

_ROW = np.dtype([("digest", "<u8"), ("attempt", "<u4"), ("width", "<u4")])


@final
class Tries(NamedTuple):
    """How it stands with a message: its id's digest, its next attempt, its width if suspected."""

    digest: int
    attempt: int = 1
    width: int = 0


FIRST_TRY = Tries(0)
"""How it stands with a message of which nothing is known."""


def digest_of(msg_id: Hashable) -> int:
    """Return 64 bits that say which message it is, the same in every process.

    They are those of its ``repr``: an id whose repr differs from process to process, because it
    shows an address or the order of a set, is not known again.

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
    """Return them as text for :func:`decode_tries`."""
    return base64.b64encode(np.array(list(tries), _ROW).tobytes()).decode()


def decode_tries(text: str) -> list[Tries]:
    """Read what :func:`encode_tries` wrote."""
    rows: list[tuple[int, int, int]] = np.frombuffer(base64.b64decode(text), _ROW).tolist()
    return [Tries(*row) for row in rows]


def digests_of(msg_ids: Iterable[Hashable]) -> bytes:
    """Return the digests of several ids, as an array's bytes."""
    return np.array([digest_of(msg_id) for msg_id in msg_ids], np.uint64).tobytes()
