"""The intake: messages that a hosted spout has emitted and no batch has planned yet."""

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from sparkstorm.sources.message_bytes import MeanBytes, bytes_of

__all__ = ["EmittedMessages", "Intake", "LoadKey"]

_PASS_OVER = 12
"""So many messages in a row are not measured: measuring takes longer than adding. One in 13 is, a
prime, so that large messages in turns with small ones are hit as often.
"""


class LoadKey(NamedTuple):
    """The properties that all messages of one load share."""

    stream: str
    tracked: bool
    attempt: int
    width: int = 0


@final
@dataclass(slots=True)
class EmittedMessages:
    """Emitted messages of one key, in the order of their emits.

    Attributes:
        rows: the values of each message.
        msg_ids: the ids.
        direct: the task of each message on a direct stream; else empty.
    """

    rows: list[Sequence[Any]] = field(default_factory=list)
    msg_ids: list[Hashable] = field(default_factory=list)
    direct: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, values: Sequence[Any], msg_id: Hashable, direct: int | None) -> None:
        """Add a message behind the others."""
        self.rows.append(values)
        self.msg_ids.append(msg_id)
        if direct is not None:
            self.direct.append(direct)

    def direct_of(self, row: int) -> int | None:
        """Return the task of a message on a direct stream, or None."""
        return self.direct[row] if self.direct else None

    def cut(self, start: int, stop: int | None = None) -> "EmittedMessages":
        """Take out the messages between two positions."""
        cut = EmittedMessages(
            self.rows[start:stop], self.msg_ids[start:stop], self.direct[start:stop]
        )
        del self.rows[start:stop], self.msg_ids[start:stop], self.direct[start:stop]
        return cut

    def put_before(self, first: "EmittedMessages") -> None:
        """Put other messages before these."""
        self.rows[:0], self.msg_ids[:0], self.direct[:0] = first.rows, first.msg_ids, first.direct

    def drop(self, rows: Sequence[int]) -> None:
        """Take out single messages."""
        gone = set(rows)
        columns: tuple[list[Any], ...] = (self.rows, self.msg_ids, self.direct)
        for values in columns:
            values[:] = [value for row, value in enumerate(values) if row not in gone]


@final
class Intake:
    """The messages of one spout task that wait for a batch, by key.

    The spout's thread adds messages, the planner's thread takes them. ``message_bytes`` is the mean
    size of the messages.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[LoadKey, EmittedMessages] = {}
        self._count = 0
        self._tracked = 0
        self._pass_over = 0
        self.message_bytes = MeanBytes()

    def __len__(self) -> int:
        return self._count

    @property
    def tracked(self) -> int:
        """How many messages have an id, so that the spout wants to hear of their end."""
        return self._tracked

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects (:mod:`sparkstorm.sources.blame`)."""
        with self._lock:
            return {key.width for key in self._waiting if key.width}

    def add(
        self, key: LoadKey, values: Sequence[Any], msg_id: Hashable, direct: int | None
    ) -> None:
        """Add one message."""
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None:
                waiting = self._waiting[key] = EmittedMessages()
            waiting.add(values, msg_id, direct)
            self._note(key, 1)
        if self._pass_over:
            self._pass_over -= 1
        else:
            self.message_bytes.note(sum(map(bytes_of, values)))
            self._pass_over = _PASS_OVER if self.message_bytes.settled else 0

    def keys(self, width: int) -> list[LoadKey]:
        """Return the keys of a width, the oldest first."""
        with self._lock:
            return [key for key in self._waiting if key.width == width]

    def tracked_ids(self) -> list[tuple[int, list[Hashable]]]:
        """Return the ids of the tracked messages, with the number of their next attempt."""
        with self._lock:
            return [
                (key.attempt, list(waiting.msg_ids))
                for key, waiting in self._waiting.items()
                if key.tracked
            ]

    def take(self, key: LoadKey, limit: int) -> EmittedMessages:
        """Take out the first messages of a key."""
        with self._lock:
            waiting = self._waiting[key]
            taken = waiting.cut(0, limit)
            if not len(waiting):
                del self._waiting[key]
            self._note(key, -len(taken))
            return taken

    def put_back(self, key: LoadKey, messages: EmittedMessages) -> None:
        """Let taken messages wait once more, before the others of their key."""
        with self._lock:
            self._waiting.setdefault(key, EmittedMessages()).put_before(messages)
            self._note(key, len(messages))

    def _note(self, key: LoadKey, more: int) -> None:
        """Count messages: a spout's thread asks for the counts at each message."""
        self._count += more
        if key.tracked:
            self._tracked += more
