"""Unfinished messages of sources, as people see them."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.acking.lineage import Indexes
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.texts.showing import shown

__all__ = [
    "Content",
    "MessageState",
    "Messages",
    "Named",
    "ReadContent",
    "Unfinished",
    "message_id",
    "message_name",
]


class MessageState(StrEnum):
    """Where an unfinished message is."""

    WAITING = "waiting"
    """Emitted by the spout; not yet in a batch."""
    RUNNING = "running"
    """In a batch."""
    OPEN = "open"
    """The batch is committed, and a bolt still holds a tuple."""
    RETRY = "retry"
    """Failed, and waiting for the next try."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The payload of a message.

    Attributes:
        stream: the stream of the emit.
        values: the values; None if they are not known.
        direct: the task that ``emit_direct`` picked.
        note: why the values are not known.
    """

    stream: str = DEFAULT_STREAM
    values: tuple[Any, ...] | None = None
    direct: int | None = None
    note: str = ""


ReadContent: TypeAlias = Callable[[], Content]
"""Reads a payload, perhaps from the source, which takes a while: called without any lock."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The name of a message in flight.

    Attributes:
        component: the spout.
        task: the spout's task.
        owner: the task as ``component/index``.
        name: the spout's own name for the message, as text.
        attempt: the attempt's number.
        since: when the first attempt began, in seconds since 1970.
    """

    component: str
    task: int
    owner: str
    name: str
    attempt: int
    since: float

    @property
    def id(self) -> str:
        """The message's id, the same in all attempts."""
        return message_id(self.owner, self.name)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """Messages of one source that share everything but their names.

    Attributes:
        component: the spout.
        task: the spout's task.
        owner: the task as ``component/index``, by which messages keep their id over restarts.
        state: where the messages are; messages in flight are ``RUNNING``.
        places: the messages' places in the load, or in the queue.
        name: returns the spout's own name for the message at a place.
        attempt: the attempt's number; while messages wait, the next attempt's.
        since: when the first attempt began, in seconds since 1970; 0 if unknown.
        first: the root of place 0; None if the messages are in no batch.
        due: when the next attempt is due, on the clock of the batches.
        content: returns how to read the payload of the message at a place.
    """

    component: str
    task: int
    owner: str
    state: MessageState
    places: Indexes
    name: Callable[[int], Hashable]
    attempt: int = 1
    since: float = 0.0
    first: int | None = None
    due: float | None = None
    content: Callable[[int], ReadContent]

    def __len__(self) -> int:
        return len(self.places)

    def at(self, places: Indexes, state: MessageState) -> "Unfinished":
        """Return some of the messages, in another state."""
        return replace(self, places=places, state=state)

    def roots(self) -> U64:
        """Return the roots of messages in flight; nothing for other messages."""
        if self.first is None:
            return np.empty(0, np.uint64)
        return self.places.astype(np.uint64) + np.uint64(self.first)


class Messages(Protocol):
    """Names the messages of one source, for people; any thread may ask."""

    def unfinished(self) -> Iterator[Unfinished]:
        """Yield the unfinished messages."""
        ...

    def named(self, roots: U64) -> Iterator[tuple[int, Named]]:
        """Yield the names of the roots in flight, among some ascending roots."""
        ...

    def hurry(self, ids: Collection[str], now: float) -> int:
        """Let messages that wait be due now; return how many."""
        ...


def message_name(name: Hashable) -> str:
    """Return a spout's name for a message as text for people.

    >>> message_name("order-7"), message_name(("orders", 0, 42)), message_name(b"x")
    ('order-7', 'orders/0/42', "b'x'")
    """
    if isinstance(name, str):
        return name
    if isinstance(name, tuple) and all(isinstance(part, str | int) for part in name):
        return "/".join(map(str, name))
    return shown(name)


def message_id(owner: str, name: str) -> str:
    """Return the id of a message: the same in all attempts, and over restarts.

    >>> message_id("orders/0", "order-7") == message_id("orders/0", "order-7")
    True
    """
    return hashlib.blake2b(
        f"{owner}\0{name}".encode(errors="backslashreplace"), digest_size=8
    ).hexdigest()
