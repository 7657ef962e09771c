"""Spouts for tests: fed by hand, or with fixed tuples. They work under every runner."""

import threading
import uuid
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.config import Config
from sparkstorm.streams import DEFAULT_STREAM, Outputs
from sparkstorm.verdicts import Failure

__all__ = ["FeederSpout", "FixedSpout"]

_FEEDS: "dict[str, _Feed]" = {}


class _Feed:
    """The data that a feeder and its copies in the spout tasks share, in the driver's process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: deque[tuple[Sequence[Any], Hashable, str]] = deque()
        self.acked: list[Any] = []
        self.failed: list[tuple[Any, Failure]] = []
        self.emitting_tasks: dict[Any, int] = {}
        self.verdict_tasks: list[tuple[Any, int]] = []
        self.closed = False


@final
class FeederSpout(Spout):
    """Emits messages that the test feeds, and keeps the verdicts; never retries a failed message.

    The object in the test's hands and its copies in the running topology share one feed, which
    lives in the driver's process.

    >>> spout = FeederSpout("word string")
    >>> spout.feed(["storm"], msg_id=1)
    """

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs
        self._key = uuid.uuid4().hex  # travels with each copy of the spout, the feed does not
        _FEEDS[self._key] = _Feed()

    def feed(
        self, values: Sequence[Any], msg_id: Hashable = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Queue a message; a message without ``msg_id`` is untracked."""
        self._feed.waiting.append((list(values), msg_id, stream))

    def end(self) -> None:
        """Say that the test feeds nothing more, so that a run can drain."""
        self._feed.closed = True

    @property
    def acked(self) -> list[Any]:
        """The message ids that were acked, in order."""
        return list(self._feed.acked)

    @property
    def failed(self) -> list[Any]:
        """The message ids that failed, in order; one entry for each attempt."""
        return [msg_id for msg_id, _ in self._feed.failed]

    @property
    def failures(self) -> list[Failure]:
        """The reasons of the failures, in the order of :attr:`failed`."""
        return [failure for _, failure in self._feed.failed]

    @property
    def misdirected(self) -> list[Any]:
        """Messages whose verdict went to another task than their emit came from."""
        emitted = self._feed.emitting_tasks
        return [msg_id for msg_id, task in self._feed.verdict_tasks if emitted.get(msg_id) != task]

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Remember the task."""
        self._collector = collector
        self._task = context.task

    def next_tuple(self) -> None:
        """Emit the next message from the feed."""
        feed = self._feed
        with feed.lock:
            if feed.waiting:
                values, msg_id, stream = feed.waiting[0]
                feed.emitting_tasks[msg_id] = self._task
                self._collector.emit(values, msg_id=msg_id, stream=stream)
                # removed only now: an empty feed means that every message was emitted
                feed.waiting.popleft()

    def ack(self, msg_id: Hashable) -> None:
        """Keep the verdict."""
        self._feed.acked.append(msg_id)
        self._feed.verdict_tasks.append((msg_id, self._task))

    def fail(self, msg_id: Hashable, failure: Failure) -> None:
        """Keep the verdict."""
        self._feed.failed.append((msg_id, failure))
        self._feed.verdict_tasks.append((msg_id, self._task))

    def exhausted(self) -> bool:
        """Whether :meth:`end` was called and every message of the feed was emitted."""
        return self._feed.closed and not self._feed.waiting

    @property
    def _feed(self) -> _Feed:
        return _FEEDS[self._key]


@final
class FixedSpout(Spout):
    """Emits a fixed list of rows once; never emits a failed row again.

    Of n tasks, task i has every n-th row from row i on.
    """

    def __init__(self, rows: Sequence[Sequence[Any]], outputs: Outputs, stream: str = "default"):
        self.outputs = outputs
        self._rows = [list(row) for row in rows]
        self._stream = stream

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Take this task's share of the rows."""
        tasks = len(context.component_tasks(context.component))
        mine = list(enumerate(self._rows))[context.task_index :: tasks]
        self._left = deque(mine)
        self._collector = collector

    def next_tuple(self) -> None:
        """Emit the next row."""
        if self._left:
            number, row = self._left[0]
            self._collector.emit(row, msg_id=number, stream=self._stream)
            self._left.popleft()

    def fail(self, msg_id: Hashable, failure: Failure) -> None:
        """Do nothing: the statistics count the failure."""

    def exhausted(self) -> bool:
        """Whether all rows were emitted."""
        return not self._left
