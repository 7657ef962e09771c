"""Tasks of partitioned spouts: only offsets pass the driver, executors read the messages."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, final

import cloudpickle
import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.acking.lineage import Indexes
from sparkstorm.components.spout import PartitionedSpout, Positions, Split
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.blame import DIED_OF_IT
from sparkstorm.sources.in_flight import InFlight, LoadVerdicts
from sparkstorm.sources.letters import LetterWriter
from sparkstorm.sources.message_bytes import MeanBytes
from sparkstorm.sources.partitioned.given_up import GivenUp, SplitLetters
from sparkstorm.sources.partitioned.unfinished import Piece, SplitMessages
from sparkstorm.sources.planned import Outstanding, PlannedLoad, runs_of
from sparkstorm.sources.retries import Retries
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.sources.source import Order, Progress
from sparkstorm.sources.spout_calls import calling, context_of, run_method
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.verdicts import Failure

__all__ = ["PartitionedTask", "ranges_of"]


@final
class PartitionedTask:
    """One task of a partitioned spout: plans splits, and tries failed messages again.

    A :class:`sparkstorm.sources.source.Source`. Fresh messages and retries are planned side by
    side, so that neither holds back the other.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the task's number.
        log: shows what the spout reports.
        dead_letters: where dead letters go.
    """

    left_failed = 0

    def __init__(
        self, plan: Plan, component: str, task: int, dead_letters: DeadLetterQueue
    ) -> None:
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.owner = plan.name_of(task)
        self.bounds = make_root(task, 0), make_root(task + 1, 0)
        self.given_up = 0
        self._plan = plan
        self._config = plan.settings(component)
        self._policy = RetryPolicy.of(self._config)
        self._spout: PartitionedSpout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._clock = dead_letters.clock
        writer = LetterWriter(plan, component, task, dead_letters)
        self._now = writer.now
        self._letters = SplitLetters(plan, component, task, self._spout, writer)
        self._window = InFlight[Piece]()
        self._retries = Retries[Outstanding]()
        unopened: Any = plan.spec(component).component
        self.messages = SplitMessages(
            component,
            task,
            self.owner,
            self._spout,
            self._window,
            self._retries,
            unopened,
            plan.stream(StreamKey(component, DEFAULT_STREAM)),
        )
        """Names the task's messages."""
        self._bytes = MeanBytes()
        self._odd = 1

    @property
    def spout(self) -> PartitionedSpout:
        """The user's spout."""
        return self._spout

    # --- how the task stands ---------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Always: the spout is asked for each batch."""
        return True

    @property
    def in_flight(self) -> int:
        """Messages in a batch, or open after it."""
        return len(self._window)

    @property
    def pending(self) -> int:
        """Messages in a batch, open after it, or waiting for a retry."""
        return len(self._window) + self._retries.messages

    @property
    def message_bytes(self) -> float:
        """How large a message is, as far as the spout says so; 0 if nothing is known."""
        return self._bytes.value

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`sparkstorm.sources.blame`)."""
        return self._retries.widths

    @property
    def idle(self) -> bool:
        """Whether nothing is pending."""
        return not self.pending

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will plan nothing more."""
        if self.pending:
            return False
        with calling(self.component, "exhausted"):
            return self._spout.exhausted()

    def partitions(self) -> Sequence[PartitionStatistics]:
        """Return how the spout's partitions stand."""
        return self._spout.partitions()

    # --- from one driver to the next -------------------------------------------------------------

    def recover(self, progress: Progress | None, now: float) -> None:
        """Open the spout; with the progress under an earlier driver, if there is any."""
        if progress is not None:
            if progress.cursor is not None:
                self._spout.restore(progress.cursor)
            for item in progress.outstanding:
                self._retries.add(item, now)
        context = context_of(self._plan, self.component, self.task, self._clock)
        run_method(self._spout, "open", self._config, context)

    def forget_earlier(self) -> None:
        """Nothing: what an earlier driver knew is in the splits."""

    def progress(self, planned: Collection[int]) -> Progress:
        """Return the spout's cursor, and the splits that are owed but not in these loads."""
        with calling(self.component, "snapshot"):
            cursor = self._spout.snapshot()
        return Progress(cursor=cursor, outstanding=self._outstanding(planned))

    def adopt(self, planned: PlannedLoad, order: Order, *, whole: bool) -> PlannedLoad | None:
        """Return a split of an earlier driver's batch with roots of this driver."""
        split = planned.load.split
        if split is None:
            return None
        piece = Piece(split, planned.attempt, planned.since)
        return replace(self._planned(piece, order, planned.load.lane), partition=planned.partition)

    def take_back(self, planned: PlannedLoad, width: int, now: float) -> None:
        """Let an adopted split wait, since its batch is not run as it was.

        A message that was alone when the driver died is charged with the death.
        """
        first = planned.load.first
        if first is None:
            return
        piece = self._window.remove(first)
        attempt = piece.attempt
        if width == 1:
            if self._policy.delay(attempt=attempt, key=first) is None:
                self._fail(piece.split, [(0, 1)], replace(DIED_OF_IT, attempt=attempt))
                self._bury([_given_up(piece, [(0, DIED_OF_IT)])], now)
                return
            attempt += 1
        self._wait(piece.split, attempt, piece.since, now, width=width)

    def close(self) -> None:
        """Close the spout."""
        self._spout.close()

    # --- planning --------------------------------------------------------------------------------

    def plan(self, order: Order) -> list[PlannedLoad]:
        """Return retries that are due, and fresh messages.

        If too much is due, retries and new messages have half of the batch each, or what the
        others leave.
        """
        self._odd = 1 - self._odd
        limit = order.limit
        half = (limit + self._odd) // 2
        most = max(limit - self._retries.due(order.now), half) if order.fresh else 0
        new = self._fresh(min(most, order.room), order.pieces_of(limit))
        left = limit - sum(piece.split.count for piece in new)
        return self._planned_all(self._due(left, order.now) + new, order)

    def plan_suspects(self, order: Order, width: int) -> list[PlannedLoad]:
        """Return suspects of a width."""
        suspects = self._retries.take_suspects(order.limit, width)
        return self._planned_all([Piece(o.split, o.attempt, o.since) for o in suspects], order)

    def _fresh(self, limit: int, pieces: int) -> list[Piece]:
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

    def _due(self, limit: int, now: float) -> list[Piece]:
        """Take up to ``limit`` due retries; retries of one attempt may be read together."""
        due: dict[tuple[int, float], list[Split]] = {}
        for item in self._retries.take(limit, now):
            due.setdefault((item.attempt, item.since), []).append(item.split)
        with calling(self.component, "merge"):
            merged = {try_: self._spout.merge(splits) for try_, splits in due.items()}
        return [Piece(split, *try_) for try_, splits in merged.items() for split in splits]

    def _planned_all(self, pieces: Sequence[Piece], order: Order) -> list[PlannedLoad]:
        return [self._planned(piece, order, order.numbers.lane(self.task)) for piece in pieces]

    def _planned(self, piece: Piece, order: Order, lane: int) -> PlannedLoad:
        """Make the load of a split, and put it into the window."""
        split = piece.split
        first = order.numbers.first(self.task) if self._plan.tracked else None
        load = Load(
            component=self.component,
            task=self.task,
            stream=DEFAULT_STREAM,
            lane=lane,
            count=split.count,
            first=first,
            split=split,
        )
        if first is not None:
            self._window.add(first, split.count, piece)
        if split.size:
            self._bytes.note(split.size / split.count, split.count)
        order.numbers.note(load)
        return PlannedLoad(load=load, attempt=piece.attempt, owner=self.owner, since=piece.since)

    # --- verdicts --------------------------------------------------------------------------------

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Call the spout's ack and fail; failed messages wait for their next try."""
        given_up: list[GivenUp] = []
        for verdicts in self._window.verdicts(acked, failed):
            if len(verdicts.acked):
                self._ack(verdicts.messages.split, ranges_of(verdicts.acked))
            given_up += self._retry(verdicts, now)
        self._bury(given_up, now)

    def ack_untracked(self, load: Load) -> None:
        """Ack a split whose batch is committed, in a topology without ackers."""
        if load.split is not None:
            self._ack(load.split, [(0, load.count)])

    def _outstanding(self, planned: Collection[int]) -> list[Outstanding]:
        owed = [self._owed(first) for first in self._window if first not in planned]
        return [*owed, *self._retries]

    def _owed(self, first: int) -> Outstanding:
        piece = self._window[first]
        split = piece.split
        if not self._window.is_whole(first):
            split = split.narrow(self._window.left(first).tolist())
        return Outstanding(owner=self.owner, split=split, attempt=piece.attempt, since=piece.since)

    def _ack(self, split: Split, positions: Positions) -> None:
        with calling(self.component, "ack"):
            run_method(self._spout, "ack", split, positions)

    def _fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        with calling(self.component, "fail"):
            run_method(self._spout, "fail", split, positions, failure)

    def _wait(
        self,
        split: Split,
        attempt: int,
        since: float,
        due: float,
        *,
        width: int = 0,
        failure: Failure | None = None,
    ) -> None:
        item = Outstanding(
            owner=self.owner,
            split=split,
            attempt=attempt,
            since=since,
            width=width,
            failure=None if failure is None else failure.in_brief(),
        )
        self._retries.add(item, due)

    def _retry(self, verdicts: LoadVerdicts[Piece], now: float) -> list[GivenUp]:
        """Let messages that failed in one way wait together; return those that are given up.

        Their texts may differ, since errors often quote the message: a split for each text would
        be a load for each, and the whole of its source read for it. The spout hears each text.
        """
        given_up: list[GivenUp] = []
        first, piece = verdicts.first, verdicts.messages
        before = piece.attempt - 1
        for way in verdicts.failed.by_way():
            texts = way.by_text(first)
            for why, positions in texts:
                told = replace(why, attempt=before + why.attempt)
                self._fail(piece.split, positions, told)
            failure, key = way.first, int(way.roots[0])
            wait = self._policy.wait(failure, attempt=before + failure.attempt, key=key)
            if wait is None:
                whys = dict(way.items())
                given_up += [
                    _given_up(piece, [(place, whys[first + place]) for place in _each(positions)])
                    for _, positions in texts
                ]
                continue
            places = (way.roots - np.uint64(first)).astype(np.int64).tolist()
            attempt = piece.attempt + failure.counted
            waiting = piece.split.narrow(places)
            self._wait(waiting, attempt, piece.since, now + wait, failure=failure)
        return given_up

    def _bury(self, given_up: Sequence[GivenUp], now: float) -> None:
        """Write the letters of messages that were given up, then tell the spout and people."""
        done, later = self._letters.write(given_up)
        for one in later:
            pause = self._policy.pause(attempt=one.attempt, key=one.positions[0])
            waiting = one.split.narrow(one.positions)
            self._wait(waiting, one.attempt, one.since, now + pause, failure=one.failure)
        for one, _ in done:
            self.given_up += len(one.group)
            positions = ranges_of(np.array(one.positions, np.int64))
            run_method(self._spout, "give_up", one.split, positions, one.group[0][1])
        self._letters.tell(done)


def _given_up(piece: Piece, group: list[tuple[int, Failure]]) -> GivenUp:
    return GivenUp(piece.split, piece.attempt, piece.since, group)


def _each(positions: Positions) -> Iterator[int]:
    return chain.from_iterable(range(start, stop) for start, stop in positions)


def ranges_of(positions: Indexes) -> Positions:
    """Compress positions, in any order, into half-open ranges."""
    return runs_of(np.sort(positions))
