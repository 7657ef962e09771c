"""Tasks of partitioned spouts: only offsets pass the driver, messages are read by executors."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import cloudpickle
import numpy as np

from sparkstorm.acking.ids import U64, make_root
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import PartitionedSpout, Positions, Split
from sparkstorm.delivery.hosted import SpoutLog
from sparkstorm.delivery.plans import Outstanding
from sparkstorm.delivery.remembered import DIED_OF_IT
from sparkstorm.delivery.retry import RetryPolicy
from sparkstorm.errors import ComponentError, SparkstormError
from sparkstorm.execution.reading import Load
from sparkstorm.planning.plan import Plan
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.verdicts import Failure

__all__ = ["PartitionedTask", "ranges_of"]


@dataclass(slots=True)
class _Pending:
    """A split in a batch, or open after it: which of its positions have not ended."""

    split: Split
    attempt: int
    left: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    """None while all are pending, so that a batch costs the driver nothing per message."""

    def end(self, positions: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
        """Note that these ended; returns whether all have."""
        if self.left is None:
            if len(positions) == self.split.count:
                return True
            self.left = np.ones(self.split.count, np.bool_)
        self.left[positions] = False
        return not self.left.any()

    def remaining(self) -> Split:
        """The part of the split that has not ended."""
        if self.left is None:
            return self.split
        return self.split.narrow(np.flatnonzero(self.left).tolist())


@final
class PartitionedTask:
    """One task of a partitioned spout: plans splits, keeps what is pending, retries what failed.

    Fresh messages and retries are planned side by side, so that neither holds back the other.
    All methods run on one thread at a time.
    """

    def __init__(self, plan: Plan, component: str, task: int, log: SpoutLog) -> None:
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.owner = f"{component}/{task - plan.tasks[component].start}"
        self.given_up = 0
        self.retried = 0
        self._plan = plan
        self._log = log
        self._config = plan.config.override(dict(spec.settings))
        self._policy = RetryPolicy.of(self._config)
        self._spout: PartitionedSpout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._pending: dict[int, _Pending] = {}
        self._retries: list[tuple[float, int, Outstanding]] = []
        self._suspects: list[Outstanding] = []
        self._tie = itertools.count()
        self._in_flight = 0

    @property
    def spout(self) -> PartitionedSpout:
        """The user's spout."""
        return self._spout

    @property
    def pending(self) -> int:
        """Messages in a batch, open after it, or waiting for a retry."""
        return self._in_flight + self.waiting_retries

    @property
    def waiting_retries(self) -> int:
        """Messages that wait for their next try."""
        retries = [item for _, _, item in self._retries]
        return sum(item.split.count for item in (*retries, *self._suspects))

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`remembered`)."""
        return {item.width for item in self._suspects}

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will plan nothing more."""
        return not self.pending and self._spout.exhausted()

    def open(self, cursor: Any, outstanding: Iterable[Outstanding], now: float) -> None:
        """Open the spout; with the progress of an earlier run, if there is one."""
        if cursor is not None:
            self._spout.restore(cursor)
        for item in outstanding:
            self._set_aside(item, now)
        context = TaskContext(
            topology=self._plan.name,
            component=self.component,
            task=self.task,
            tasks=self._plan.tasks,
            config=self._config,
        )
        self._spout.open(self._config, context)

    def plan(self, limit: int, pieces: int, *, fresh: bool, now: float) -> list[tuple[Split, int]]:
        """Return (split, attempt) for the next batch.

        Args:
            limit: the number of messages wanted.
            pieces: into how many parts they should come, about.
            fresh: whether new messages are wanted too, not only retries that are due.
            now: the time.
        """
        planned = []
        while self._retries and self._retries[0][0] <= now:
            item = heapq.heappop(self._retries)[2]
            planned.append((item.split, item.attempt))
        each = -(-limit // pieces)
        while fresh and limit > 0:
            with self._calling("plan"):
                splits = [split for split in self._spout.plan(min(each, limit)) if split.count]
            if not splits:
                break
            planned += [(split, 1) for split in splits]
            limit -= sum(split.count for split in splits)
        return planned

    def plan_suspects(self, limit: int, width: int) -> list[tuple[Split, int]]:
        """Return (split, attempt) for up to ``limit`` suspects of a width."""
        planned, left = [], []
        for item in self._suspects:
            count = min(limit, item.split.count) if item.width == width else 0
            if count:
                planned.append((item.split.narrow(range(count)), item.attempt))
                limit -= count
            if count < item.split.count:
                rest = item.split.narrow(range(count, item.split.count)) if count else item.split
                left.append(replace(item, split=rest))
        self._suspects = left
        return planned

    def take_back(self, first: int, width: int, now: float) -> None:
        """Set a load aside whose batch did not end, because the driver did.

        Args:
            first: the load's first root.
            width: how many messages ran when the driver died; 0 if it ended in good order.
            now: the time.
        """
        pending = self._pending.pop(first)
        self._in_flight -= pending.split.count
        attempt = pending.attempt
        if width == 1:
            failure = replace(DIED_OF_IT, attempt=attempt)
            if self._policy.delay(attempt=attempt, key=first) is None:
                self._fail(pending.split, [(0, 1)], failure)
                self._give_up(pending, [0], failure)
                return
            attempt += 1
        item = Outstanding(owner=self.owner, split=pending.split, attempt=attempt, width=width)
        self._set_aside(item, now)

    def load(self, split: Split, attempt: int, sequence: int, lane: int) -> Load:
        """Make the load of a split and note it as pending."""
        first = make_root(self.task, sequence) if self._plan.tracked else None
        if first is not None:
            self._pending[first] = _Pending(split, attempt)
            self._in_flight += split.count
        return Load(
            component=self.component,
            task=self.task,
            stream=DEFAULT_STREAM,
            lane=lane,
            count=split.count,
            first=first,
            split=split,
        )

    def done_untracked(self, split: Split) -> None:
        """Ack a split of an untracked topology: its batch is committed."""
        self._ack(split, [(0, split.count)])

    def deliver(self, acked: U64, failed: Sequence[tuple[int, Failure]], now: float) -> None:
        """Call the spout's ack and fail, and set aside what is to be tried again."""
        for first, pending in list(self._pending.items()):
            last = first + pending.split.count
            start, stop = np.searchsorted(acked, np.array([first, last], np.uint64))
            done = (acked[start:stop] - np.uint64(first)).astype(np.int64)
            broken = [(root - first, why) for root, why in failed if first <= root < last]
            if len(done):
                self._ack(pending.split, ranges_of(done))
            self._retry(first, pending, broken, now)
            ended = np.concatenate([done, np.array([p for p, _ in broken], np.int64)])
            self._in_flight -= len(ended)
            if len(ended) and pending.end(ended):
                del self._pending[first]

    def outstanding(self, committing: Iterable[int] = ()) -> list[Outstanding]:
        """What is owed and not in these loads (by their first roots)."""
        skip = set(committing)
        owed = [
            Outstanding(owner=self.owner, split=pending.remaining(), attempt=pending.attempt)
            for first, pending in self._pending.items()
            if first not in skip
        ]
        return owed + [item for _, _, item in self._retries] + self._suspects

    def _ack(self, split: Split, positions: Positions) -> None:
        with self._calling("ack"):
            self._spout.ack(split, positions)

    def _fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        with self._calling("fail"):
            self._spout.fail(split, positions, failure)

    def _set_aside(self, item: Outstanding, now: float) -> None:
        if item.width:
            self._suspects.append(item)
        else:
            heapq.heappush(self._retries, (now, next(self._tie), item))

    @contextmanager
    def _calling(self, method: str) -> Iterator[None]:
        """Around the user's code: what it raises is the spout's fault, not Spark's."""
        try:
            yield
        except SparkstormError:
            raise
        except Exception as error:
            raise ComponentError(
                f"spout {self.component!r} raised in {method}: {type(error).__name__}: {error}"
            ) from error

    def _retry(
        self, first: int, pending: _Pending, broken: list[tuple[int, Failure]], now: float
    ) -> None:
        """Those that failed for one reason are tried again together."""
        by_reason: dict[tuple[str, str, str], list[tuple[int, Failure]]] = {}
        for position, failure in broken:
            same = (failure.reason.value, failure.component, failure.message)
            by_reason.setdefault(same, []).append((position, failure))
        for group in by_reason.values():
            positions = np.array([position for position, _ in group], np.int64)
            failure = group[0][1]
            self._fail(pending.split, ranges_of(positions), failure)
            key = first + int(positions[0])
            wait = None if failure.final else self._policy.delay(attempt=pending.attempt, key=key)
            if wait is None:
                self._give_up(pending, positions.tolist(), failure)
                continue
            split = pending.split.narrow(positions.tolist())
            item = Outstanding(owner=self.owner, split=split, attempt=pending.attempt + 1)
            self.retried += split.count
            heapq.heappush(self._retries, (now + wait, next(self._tie), item))

    def _give_up(self, pending: _Pending, positions: list[int], failure: Failure) -> None:
        self.given_up += len(positions)
        name = self._spout.msg_id(pending.split, positions[0])
        more = f" and {len(positions) - 1} more" if len(positions) > 1 else ""
        text = f"message {name!r}{more} was given up after {pending.attempt} tries: {failure}"
        self._log(self.component, self.task, "error", text)


def ranges_of(positions: np.ndarray[Any, np.dtype[np.int64]]) -> Positions:
    """Compress positions into half-open ranges.

    >>> ranges_of(np.array([0, 1, 2, 5]))
    [(0, 3), (5, 6)]
    """
    ordered = np.sort(positions)
    edges = np.flatnonzero(np.diff(ordered) != 1) + 1
    groups = np.split(ordered, edges) if len(ordered) else []
    return [(int(group[0]), int(group[-1]) + 1) for group in groups]
