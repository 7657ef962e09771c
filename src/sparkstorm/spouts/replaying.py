"""A base for hosted spouts whose source cannot give a message twice: keep it until its ack."""

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
    """Keeps each message until it is acked, and emits it again by the retry policy if it fails.

    Subclasses implement :meth:`next_message`. Retries never hold back new messages: whichever is
    due is emitted.
    """

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Called once before anything else; call ``super().open`` when overriding it."""
        self.collector = collector
        self._clock = context.clock
        self._policy = RetryPolicy.of(config)
        self._kept: dict[Hashable, Sequence[Any]] = {}
        self._retries: list[tuple[float, int, Hashable]] = []
        self._tie = itertools.count()

    def next_message(self) -> tuple[Hashable, Sequence[Any]] | None:
        """Return (msg_id, values) of the next new message, or None if there is none now."""
        raise NotImplementedError

    def next_tuple(self) -> None:
        """Emit a message that is due for a retry, else a new one."""
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
        """Set the message aside until its retry is due, or give it up."""
        key = next(self._tie)
        wait = self._policy.wait(failure, attempt=failure.attempt, key=key)
        if wait is None:
            self._kept.pop(msg_id, None)
            self.collector.give_up(msg_id, failure)
        else:
            due = self._clock.monotonic() + wait
            heapq.heappush(self._retries, (due, next(self._tie), msg_id))

    @property
    def kept(self) -> int:
        """How many messages are neither acked nor given up."""
        return len(self._kept)
