"""The ReplayingSpout: a base for hosted spouts whose source cannot give a message twice."""

import heapq
import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.config import Config
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.verdicts import Failure

__all__ = ["ReplayingSpout"]


class ReplayingSpout(Spout):
    """Keeps each message until its ack, and emits failed messages again by the retry policy.

    Subclasses implement :meth:`next_message`. Retries never hold back new messages: a message is
    emitted when it is due.
    """

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Called once, first of all methods. An override has to call ``super().open``."""
        self._clock = context.clock
        self._policy = RetryPolicy.of(config)
        self._kept: dict[Hashable, Sequence[Any]] = {}
        self._retries: list[tuple[float, int, Hashable]] = []
        self._tie = itertools.count()

    def next_message(self) -> tuple[Hashable, Sequence[Any]] | None:
        """Return (msg_id, values) of the next new message, or None if there is none now."""
        raise NotImplementedError

    def next_tuple(self) -> None:
        """Emit a message due for a retry, else a new message."""
        if self._retries and self._retries[0][0] <= self._clock.monotonic():
            msg_id = heapq.heappop(self._retries)[2]
            self.collector.emit(self._kept[msg_id], msg_id=msg_id)
            return
        message = self.next_message()
        if message is not None:
            msg_id, values = message
            self._kept[msg_id] = values
            self.collector.emit(values, msg_id=msg_id)

    def ack(self, msg_id: Hashable) -> None:
        """Forget the message."""
        self._kept.pop(msg_id, None)

    def fail(self, msg_id: Hashable, failure: Failure) -> None:
        """Keep the message until its retry is due, or give it up."""
        key = next(self._tie)
        wait = self._policy.wait(failure, attempt=failure.attempt, key=key)
        if wait is None:
            self._kept.pop(msg_id, None)
            self.collector.give_up(msg_id, failure)
        else:
            due = self._clock.monotonic() + wait
            # The tie parts equal times: message ids may not be comparable.
            heapq.heappush(self._retries, (due, next(self._tie), msg_id))

    def retry_now(self, msg_id: Hashable) -> None:
        """Let a message that waits for its retry be due."""
        now = self._clock.monotonic()
        self._retries = [
            (min(due, now) if waiting == msg_id else due, tie, waiting)
            for due, tie, waiting in self._retries
        ]
        heapq.heapify(self._retries)

    @property
    def kept(self) -> int:
        """How many messages are neither acked nor given up."""
        return len(self._kept)
