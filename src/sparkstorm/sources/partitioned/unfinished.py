"""Unfinished messages of a partitioned task: in flight, or waiting for their next try."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple, final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.components.spout import PartitionedSpout, Split
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.sources.in_flight import InFlight
from sparkstorm.sources.partitioned.payloads import read_payloads_apart
from sparkstorm.sources.planned import Outstanding
from sparkstorm.sources.retries import Retries
from sparkstorm.sources.unfinished import (
    Content,
    MessageState,
    Named,
    Unfinished,
    message_id,
    message_name,
)
from sparkstorm.streams import Stream

__all__ = ["Piece", "SplitMessages"]


class Piece(NamedTuple):
    """A split in a batch.

    Attributes:
        split: the split.
        attempt: which try of its messages.
        since: when the first try began, in seconds since 1970.
    """

    split: Split
    attempt: int
    since: float


@final
class SplitMessages:
    """Names the messages of a partitioned task.

    Args:
        component: the spout's id.
        task: the spout's task.
        owner: the task as ``component/index``.
        spout: the spout, which names its messages.
        window: has the messages in flight.
        retries: has the messages that wait.
        unopened: the spout as it was submitted, which reads messages once more.
        stream: the spout's stream.
    """

    def __init__(
        self,
        component: str,
        task: int,
        owner: str,
        spout: PartitionedSpout,
        window: InFlight[Piece],
        retries: Retries[Outstanding],
        unopened: PartitionedSpout,
        stream: Stream,
    ) -> None:
        self._component = component
        self._task = task
        self._owner = owner
        self._spout = spout
        self._window = window
        self._retries = retries
        self._unopened = unopened
        self._stream = stream

    def unfinished(self) -> Iterator[Unfinished]:
        """Yield all messages, a split at a time."""
        for first, piece, left in self._window.loads():
            yield self._made(piece, left, MessageState.RUNNING, first=first)
        for due, item in self._retries.waiting():
            piece = Piece(item.split, item.attempt, item.since)
            places = np.arange(item.split.count)
            yield self._made(piece, places, MessageState.RETRY, due=due)

    def named(self, roots: U64) -> Iterator[tuple[int, Named]]:
        """Yield the names of those of some ascending roots that are in flight."""
        for root, piece, place in self._window.find(roots):
            yield (
                root,
                Named(
                    component=self._component,
                    task=self._task,
                    owner=self._owner,
                    name=self._name(piece.split, place),
                    attempt=piece.attempt,
                    since=piece.since,
                ),
            )

    def hurry(self, ids: Collection[str], now: float) -> int:
        """Let messages that wait be due now, with those that wait beside them."""
        return self._retries.hurry(lambda item: self._has_any(item.split, ids), now)

    def _has_any(self, split: Split, ids: Collection[str]) -> bool:
        names = (self._name(split, place) for place in range(split.count))
        return any(message_id(self._owner, name) in ids for name in names)

    def _name(self, split: Split, place: int) -> str:
        return message_name(self._spout.msg_id(split, place))

    def _made(
        self,
        piece: Piece,
        places: np.typing.NDArray[np.int64],
        state: MessageState,
        *,
        first: int | None = None,
        due: float | None = None,
    ) -> Unfinished:
        return Unfinished(
            component=self._component,
            task=self._task,
            owner=self._owner,
            state=state,
            places=places,
            name=lambda place: self._spout.msg_id(piece.split, place),
            attempt=piece.attempt,
            since=piece.since,
            first=first,
            due=due,
            content=lambda place: partial(self._content, piece.split, place),
        )

    def _content(self, split: Split, place: int) -> Content:
        """Read a message once more, in a process of its own: reading may end a process."""
        only = place if split.only is None else split.only[place]
        kept = None if split.kept is None else (split.kept[place],)
        one = Split(count=1, data=split.data, only=(only,), kept=kept)
        try:
            (payload,) = read_payloads_apart(self._unopened, one, self._stream)
        except SpoutConnectionError as error:
            return Content(note=f"its source does not answer: {error}")
        return Content(values=payload.values, note=payload.note)
