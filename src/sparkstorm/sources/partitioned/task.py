"""Tasks of partitioned spouts: only offsets pass the driver, messages are read by executors."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, final

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.acking.lineage import Indexes
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import PartitionedSpout, Positions, Split
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.metrics import PartitionStatistics, TaskMetrics, skipped_in
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.blame import DIED_OF_IT
from sparkstorm.sources.calling import calling
from sparkstorm.sources.hosted.task import SpoutLog
from sparkstorm.sources.letters import Ended, LetterWriter, given_up_texts
from sparkstorm.sources.load_verdicts import verdicts_by_load
from sparkstorm.sources.partitioned.given_up import GivenUp, SplitLetters
from sparkstorm.sources.planned import Outstanding, runs_of
from sparkstorm.sources.retries import Retries
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.verdicts import Failure

__all__ = ["PartitionedTask", "Piece", "partitions_of", "ranges_of"]


class Piece(NamedTuple):
    """A split for a batch: which try of its messages, and when the first one began."""

    split: Split
    attempt: int
    since: float


@dataclass(slots=True)
class _Pending:
    """A split in a batch, or open after it: which of its positions have not ended."""

    split: Split
    attempt: int
    since: float
    left: NDArray[np.bool_] | None = None
    """None while all are pending, so that a batch costs the driver nothing per message."""

    def end(self, positions: Indexes) -> bool:
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

    def given_up(self, group: list[tuple[int, Failure]]) -> GivenUp:
        """These of its messages, if they are not to be tried again."""
        return GivenUp(self.split, self.attempt, self.since, group)


@final
class PartitionedTask:
    """One task of a partitioned spout: plans splits, keeps what is pending, retries what failed.

    Fresh messages and retries are planned side by side, so that neither holds back the other.
    All methods run on one thread at a time.
    """

    def __init__(
        self, plan: Plan, component: str, task: int, log: SpoutLog, office: DeadLetterOffice
    ) -> None:
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.owner = plan.name_of(task)
        self.given_up = 0
        self._plan = plan
        self._log = log
        self._config = plan.settings(component)
        self._policy = RetryPolicy.of(self._config)
        self._spout: PartitionedSpout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._clock = office.clock
        writer = LetterWriter(plan, component, task, office)
        self._now = writer.now
        self._letters = SplitLetters(plan, component, self._spout, writer)
        self._pending: dict[int, _Pending] = {}
        self._retries = Retries()
        self._suspects: list[Outstanding] = []
        self._in_flight = 0
        self._odd = 1

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
        return sum(item.split.count for item in (*self._retries, *self._suspects))

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`sparkstorm.sources.blame`)."""
        return {item.width for item in self._suspects}

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will plan nothing more."""
        if self.pending:
            return False
        with calling(self.component, "exhausted"):
            return self._spout.exhausted()

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
            clock=self._clock,
        )
        self._spout.open(self._config, context)

    def snapshot(self) -> Any:
        """Return the spout's progress, for the next plan."""
        with calling(self.component, "snapshot"):
            return self._spout.snapshot()

    def plan(
        self, limit: int, pieces: int, *, fresh: bool, now: float, room: int | None = None
    ) -> list[Piece]:
        """Return what the next batch reads.

        If too much is due, retries and new messages have half of it each, or what the others leave.

        Args:
            limit: the number of messages wanted; there are no more.
            pieces: into how many parts new ones should come, about.
            fresh: whether new messages are wanted too, not only retries that are due.
            now: the time.
            room: how many of them may be new.
        """
        self._odd = 1 - self._odd
        most = max(limit - self._retries.due(now), (limit + self._odd) // 2) if fresh else 0
        new = self._plan_fresh(most if room is None else min(most, room), pieces)
        left = limit - sum(piece.split.count for piece in new)
        return self._due_retries(left, now) + new

    def _plan_fresh(self, limit: int, pieces: int) -> list[Piece]:
        planned: list[Piece] = []
        each = -(-limit // pieces)
        while limit > 0:
            with calling(self.component, "plan"):
                splits = [split for split in self._spout.plan(min(each, limit)) if split.count]
            if not splits:
                break
            planned += [Piece(split, 1, self._now()) for split in splits]
            limit -= sum(split.count for split in splits)
        return planned

    def _due_retries(self, limit: int, now: float) -> list[Piece]:
        """Take up to ``limit`` retries that are due; those of one attempt may be read together."""
        due: dict[tuple[int, float], list[Split]] = {}
        for item in self._retries.take(limit, now):
            due.setdefault((item.attempt, item.since), []).append(item.split)
        with calling(self.component, "merge"):
            merged = {try_: self._spout.merge(splits) for try_, splits in due.items()}
        return [Piece(split, *try_) for try_, splits in merged.items() for split in splits]

    def plan_suspects(self, limit: int, width: int) -> list[Piece]:
        """Return up to ``limit`` suspects of a width."""
        planned, left = [], []
        for item in self._suspects:
            if item.width != width or limit <= 0:
                left.append(item)
                continue
            taken, rest = item.cut(limit)
            planned.append(Piece(taken.split, item.attempt, item.since))
            limit -= taken.split.count
            left += [] if rest is None else [rest]
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
                self._bury([pending.given_up([(0, DIED_OF_IT)])], now)
                return
            attempt += 1
        item = Outstanding(
            owner=self.owner,
            split=pending.split,
            attempt=attempt,
            since=pending.since,
            width=width,
        )
        self._set_aside(item, now)

    def load(self, piece: Piece, sequence: int, lane: int) -> Load:
        """Make the load of a split and note it as pending."""
        split = piece.split
        first = make_root(self.task, sequence) if self._plan.tracked else None
        if first is not None:
            self._pending[first] = _Pending(*piece)
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

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Call the spout's ack and fail, and set aside what is to be tried again."""
        given_up: list[GivenUp] = []
        counts = {first: pending.split.count for first, pending in self._pending.items()}
        for first, done, broken in verdicts_by_load(counts, acked, failed):
            pending = self._pending[first]
            if len(done):
                self._ack(pending.split, ranges_of(_places(done, first)))
            given_up += self._retry(first, pending, broken, now)
            self._in_flight -= len(done) + len(broken)
            if pending.end(_places(np.concatenate([done, broken.roots]), first)):
                del self._pending[first]
        self._bury(given_up, now)

    def outstanding(self, committing: Collection[int] = frozenset()) -> list[Outstanding]:
        """What is owed and not in these loads (by their first roots)."""
        owed = [
            Outstanding(
                owner=self.owner,
                split=pending.remaining(),
                attempt=pending.attempt,
                since=pending.since,
            )
            for first, pending in self._pending.items()
            if first not in committing
        ]
        return [*owed, *self._retries, *self._suspects]

    def _ack(self, split: Split, positions: Positions) -> None:
        with calling(self.component, "ack"):
            self._spout.ack(split, positions)

    def _fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        with calling(self.component, "fail"):
            self._spout.fail(split, positions, failure)

    def _set_aside(self, item: Outstanding, due: float) -> None:
        """Keep what is to be tried again: suspects until they are asked for, others until due."""
        if item.width:
            self._suspects.append(item)
        else:
            self._retries.add(item, due)

    def _retry(
        self, first: int, pending: _Pending, broken: FailedRoots, now: float
    ) -> list[GivenUp]:
        """Those that failed in one way are tried again together; return those that are not.

        Their texts may differ, since errors often quote the message: a split for each text would
        be a load for each, and the whole of its source read for it. The spout hears each text.
        """
        given_up: list[GivenUp] = []
        before = pending.attempt - 1
        for way in broken.by_way():
            texts = way.by_text(first)
            for why, positions in texts:
                told = replace(why, attempt=before + why.attempt)
                self._fail(pending.split, positions, told)
            failure, key = way.first, int(way.roots[0])
            wait = self._policy.wait(failure, attempt=before + failure.attempt, key=key)
            if wait is None:
                whys = dict(way.items())
                given_up += [
                    pending.given_up([(place, whys[first + place]) for place in _each(positions)])
                    for _, positions in texts
                ]
                continue
            item = Outstanding(
                owner=self.owner,
                split=pending.split.narrow(_places(way.roots, first).tolist()),
                attempt=pending.attempt + failure.counted,
                since=pending.since,
            )
            self._set_aside(item, now + wait)
        return given_up

    def _bury(self, given_up: Sequence[GivenUp], now: float) -> None:
        """Write the letters of messages that were given up, then tell the spout and people."""
        done, later = self._letters.write(given_up)
        for one in later:
            item = Outstanding(
                owner=self.owner,
                split=one.split.narrow(one.positions),
                attempt=one.attempt,
                since=one.since,
            )
            key = one.positions[0]
            self._set_aside(item, now + self._policy.pause(attempt=one.attempt, key=key))
        ended: list[Ended] = []
        for one, letter in done:
            self.given_up += len(one.group)
            positions = ranges_of(np.array(one.positions, np.int64))
            self._spout.give_up(one.split, positions, one.group[0][1])
            name = self._spout.msg_id(one.split, one.positions[0])
            ended.append(Ended(name, len(one.group), one.attempts, one.group[0][1], letter))
        for text in given_up_texts(ended):
            self._log(self.component, self.task, "error", text)


def partitions_of(
    tasks: Iterable[PartitionedTask], counts: Mapping[str, Mapping[int, TaskMetrics]]
) -> dict[str, tuple[PartitionStatistics, ...]]:
    """Where the partitions of each partitioned spout stand, by spout.

    Args:
        tasks: its tasks.
        counts: what tasks have counted, by component and task.
    """
    found: dict[str, list[PartitionStatistics]] = {}
    for task in tasks:
        user = dict(counts.get(task.component, {}).get(task.task, TaskMetrics()).user)
        stand = (
            replace(one, skipped=int(user.get(skipped_in(one.partition), 0)))
            for one in task.spout.partitions()
        )
        found.setdefault(task.component, []).extend(stand)
    return {component: tuple(stand) for component, stand in found.items()}


def _each(positions: Positions) -> Iterator[int]:
    return chain.from_iterable(range(start, stop) for start, stop in positions)


def _places(roots: U64, first: int) -> Indexes:
    """Where roots are in the load that begins with ``first``."""
    return (roots - np.uint64(first)).astype(np.int64)


def ranges_of(positions: Indexes) -> Positions:
    """Compress positions, in any order, into half-open ranges."""
    return runs_of(np.sort(positions))
