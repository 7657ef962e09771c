"""Sources that outlive the driver, for simulated crashes: a queue, and a log."""

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from typing import Any, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import PartitionedSpout, Split, Spout
from sparkstorm.config import Config
from sparkstorm.streams import Outputs
from sparkstorm.testing.internal.shared import Shared
from sparkstorm.verdicts import Failure

__all__ = ["LogSpout", "RequeueSpout"]


class _Queue(Shared):
    """A queue on a server: outlives the drivers that read from it."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        super().__init__()
        self.rows = [list(row) for row in rows]
        self.ready = deque(range(len(rows)))
        self.held: dict[int, dict[int, None]] = {}
        self.acked: list[int] = []
        self.given_up: list[int] = []
        self.failures: Counter[int] = Counter()

    def connect(self, client: int) -> None:
        """Put the client's open messages back: an earlier connection did not ack them."""
        self.ready.extend(self.held.pop(client, ()))

    def take(self, client: int) -> int | None:
        """Give out a message; nobody else gets the message until the client releases it."""
        if not self.ready:
            return None
        number = self.ready.popleft()
        self.held.setdefault(client, {})[number] = None
        return number


@final
class RequeueSpout(Spout):
    """Reads from a message queue as Storm's documents describe it, in memory.

    The queue gives an open message to nobody else. ``ack`` removes the message; ``fail`` puts the
    message back, until it has failed more than ``max_retries`` times. When a driver dies, all of
    its open messages go back. A message's id is the position of its row.

    >>> RequeueSpout([["storm"], ["spark"]], "word string").waiting
    2
    """

    def __init__(self, rows: Sequence[Sequence[Any]], outputs: Outputs) -> None:
        self.outputs = outputs
        self._queue = _Queue(rows)

    @property
    def acked(self) -> list[int]:
        """The positions of the acked rows, in order."""
        return list(self._queue.acked)

    @property
    def given_up(self) -> list[int]:
        """The positions of the rows that were given up, in order."""
        return list(self._queue.given_up)

    @property
    def waiting(self) -> int:
        """How many messages the queue could give out now."""
        return len(self._queue.ready)

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Connect. Open messages of an earlier connection go back into the queue."""
        self._client = context.task_index
        self._max_retries = config.max_retries
        self._collector = collector
        self._queue.connect(self._client)

    def next_tuple(self) -> None:
        """Emit the next message."""
        number = self._queue.take(self._client)
        if number is not None:
            self._collector.emit(self._queue.rows[number], msg_id=number)

    def ack(self, msg_id: Hashable) -> None:
        """Remove the message."""
        self._release(msg_id)
        self._queue.acked.append(_position(msg_id))

    def fail(self, msg_id: Hashable, failure: Failure) -> None:
        """Put the message back, or give it up."""
        self._release(msg_id)
        number, queue = _position(msg_id), self._queue
        queue.failures[number] += 1
        # the engine may count more tries than the queue: some took the driver down
        tries, limit = max(queue.failures[number], failure.attempt), self._max_retries
        if failure.final or (limit is not None and tries > limit):
            queue.given_up.append(number)
            self._collector.give_up(msg_id, failure)
        else:
            queue.ready.append(number)

    def exhausted(self) -> bool:
        """Whether the queue has nothing to give out."""
        return not self._queue.ready

    def _release(self, msg_id: Hashable) -> None:
        del self._queue.held[self._client][_position(msg_id)]


@final
class LogSpout(PartitionedSpout):
    """Reads rows as from a log with offsets; of n tasks, task i has every n-th row from row i on.

    >>> LogSpout([["storm"], ["spark"]], "word string").outputs
    'word string'
    """

    replayable = True

    def __init__(
        self, rows: Sequence[Sequence[Any]], outputs: Outputs, *, split_rows: int = 4
    ) -> None:
        self.outputs = outputs
        self._rows = [list(row) for row in rows]
        self._split_rows = split_rows
        self._planned = 0
        self._index, self._tasks = 0, 1

    def open(self, config: Config, context: TaskContext) -> None:
        """Take this task's share of the rows."""
        self._index = context.task_index
        self._tasks = len(context.component_tasks(context.component))

    def plan(self, limit: int) -> list[Split]:
        """Return a split of the next rows of this task."""
        left = len(range(self._index, len(self._rows), self._tasks)) - self._planned
        count = min(limit, self._split_rows, left)
        if count <= 0:
            return []
        first = self._index + self._planned * self._tasks
        self._planned += count
        return [Split(count=count, data={"first": first, "step": self._tasks, "rows": count})]

    def read(self, split: Split) -> list[list[Any]]:
        """Return all rows of the split, as planned."""
        first, step = split.data["first"], split.data["step"]
        return [self._rows[first + n * step] for n in range(split.data["rows"])]

    def msg_id(self, split: Split, position: int) -> int:
        """Return the position of the row in the whole log."""
        picked = split.only[position] if split.only is not None else position
        return int(split.data["first"] + picked * split.data["step"])

    def snapshot(self) -> int:
        """Return how many rows of this task were planned."""
        return self._planned

    def restore(self, snapshot: Any) -> None:
        """Go on where an earlier run ended."""
        self._planned = int(snapshot)

    def exhausted(self) -> bool:
        """Whether all rows were planned."""
        return self._planned >= len(range(self._index, len(self._rows), self._tasks))


def _position(msg_id: Hashable) -> int:
    assert isinstance(msg_id, int)  # noqa: S101 - the spout emitted it as a position
    return msg_id
