"""What the next batch holds: shares for each spout task, spread over the partitions."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import final

from sparkstorm.acking.ids import sequence_of
from sparkstorm.batches.batch_clock import BatchClock
from sparkstorm.batches.batch_plan import BatchPlan
from sparkstorm.batches.sizing import BatchSizer
from sparkstorm.batches.spread import Spread
from sparkstorm.clock import Clock
from sparkstorm.config import Config
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.blame import company_of, encode_tries
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.message_bytes import MeanBytes
from sparkstorm.sources.partitioned.task import PartitionedTask, Piece
from sparkstorm.sources.planned import Outstanding, PlannedLoad
from sparkstorm.sources.replayed.replays import ReplayLot, Replays

__all__ = ["BatchPlanner"]

_SPREAD_FROM = 64
"""Messages of one spout task are spread over the partitions if each gets at least this many."""

_FIRST_GUESS_BYTES = 100.0
"""What messages have of which only executors know, until their spout says so."""

_MEMORY_SECS = 3600.0
"""How long messages of an earlier driver are expected to come again, and ids written down."""


@final
class BatchPlanner:
    """Plans batches from what the spout tasks have, within the limits of pending messages.

    ``sequences`` holds, for each spout task, the number that its next message gets; a number is
    never given twice, over restarts too, since each plan carries them on.
    """

    def __init__(
        self,
        plan: Plan,
        hosted: Mapping[int, HostedTask],
        partitioned: Mapping[int, PartitionedTask],
        replays: Replays,
        clock: Clock,
        run: str,
    ) -> None:
        config = plan.config
        self.sequences: dict[int, int] = {}
        self._plan = plan
        self._hosted = hosted
        self._partitioned = partitioned
        self._replays = replays
        self._times = BatchClock(clock)
        self._run = run
        self._sizer = BatchSizer(
            config.batch_target_secs,
            config.batch_most_secs,
            config.batch_min_messages,
            config.batch_max_messages,
        )
        self._note_ids = False
        self._forget_at = math.inf
        self._planned_bytes = {task: MeanBytes() for task in (*hosted, *partitioned)}
        self._configs: dict[int, Config] = {
            task: plan.settings(spec.id)
            for spec in plan.topology.spouts
            for task in plan.tasks[spec.id]
        }

    def plan(self, number: int, *, fresh: bool, now: float) -> BatchPlan | None:
        """Plan a batch, or return None if there is nothing to do.

        Args:
            number: the batch's number.
            fresh: whether partitioned spouts are asked for new messages, not only for retries.
            now: the time.
        """
        if now > self._forget_at:
            self._note_ids, self._forget_at = False, math.inf
            for task in self._hosted.values():
                task.remember({})

        def suspects() -> list[PlannedLoad]:
            return self._plan_suspects(number)

        def others() -> list[PlannedLoad]:
            return self._plan_others(number, fresh=fresh, now=now)

        # in turns, so that neither holds back the other
        order = (suspects, others) if number % 2 else (others, suspects)
        loads = order[0]() or order[1]()
        return self._with_owed(number, loads) if loads else None

    def settled(self, number: int) -> BatchPlan:
        """The plan of a batch of which nothing is left to do, with what is owed beside it."""
        return self._with_owed(number, [])

    def rerun(self, plan: BatchPlan, *, width: int, now: float) -> BatchPlan:
        """Plan a batch anew that did not end, because the driver did; ``plan`` was taken up.

        If the driver died, the messages of the batch are suspects: only a piece of it is run now.

        Args:
            plan: what can be run of the batch.
            width: how many messages the whole batch held; 0 if the driver ended in good order.
            now: the time.
        """
        loads = []
        for planned in plan.loads:
            if planned.load.first is None:
                loads.append(planned)
            else:
                self._partitioned[planned.load.task].take_back(planned.load.first, width, now)
        if width:
            loads += self._plan_suspects(plan.number)
        else:
            loads += self._plan_others(plan.number, fresh=False, now=now)
        return replace(self._with_owed(plan.number, loads), time=plan.time)

    def _plan_suspects(self, number: int) -> list[PlannedLoad]:
        """Plan a piece of the suspects in the smallest company."""
        tasks: list[HostedTask | PartitionedTask] = [
            *self._hosted.values(),
            *self._partitioned.values(),
        ]
        width = min((width for task in tasks for width in task.widths), default=0)
        left = min(company_of(width), self._sizer.limit)
        spread = Spread(self._plan.partitions, number)
        loads: list[PlannedLoad] = []
        for task in tasks if width else ():
            if left <= 0:
                break
            if isinstance(task, HostedTask):
                planned = self._load_hosted(task, left, number % self._plan.partitions, 0, width)
            else:
                planned = self._load_pieces(spread, task, task.plan_suspects(left, width))
            left -= sum(one.load.count for one in planned)
            loads += planned
        return loads

    def _plan_others(self, number: int, *, fresh: bool, now: float) -> list[PlannedLoad]:
        """Fill a batch: each in turn has its share of what those before it have left."""
        left, loads, lots = self._sizer.limit, [], []
        turns, spread = self._turns(number), Spread(self._plan.partitions, number)
        for others, turn in zip(reversed(range(len(turns))), turns, strict=True):
            share = -(-left // (others + 1))
            if isinstance(turn, Replays):
                lots = turn.take(share, fresh=fresh, now=now)
                left -= sum(len(lot.items) for lot in lots)
                continue
            if isinstance(turn, HostedTask):
                planned = self._plan_hosted(number, turn, share)
            else:
                planned = self._plan_partitioned(spread, turn, share, fresh=fresh, now=now)
            left -= sum(one.load.count for one in planned)
            loads += planned
        return loads + self._plan_replays(number, lots, loads)

    def _turns(self, number: int) -> list[HostedTask | PartitionedTask | Replays]:
        """Who may fill a batch; another one is first each time, lest the last get nothing ever."""
        every: list[HostedTask | PartitionedTask | Replays] = [
            *self._hosted.values(),
            *self._partitioned.values(),
            *([self._replays] if self._replays.asked else []),
        ]
        first = number % len(every)
        return every[first:] + every[:first]

    def _with_owed(self, number: int, loads: Sequence[PlannedLoad]) -> BatchPlan:
        planned = {p.load.first for p in loads if p.load.first is not None}
        outstanding: list[Outstanding] = []
        for partitioned in self._partitioned.values():
            outstanding += partitioned.outstanding(planned)
        return BatchPlan(
            number=number,
            run=self._run,
            time=self._times.now(),
            loads=tuple(loads),
            sequences=self._sequences(),
            cursors={
                self._plan.name_of(n): task.snapshot() for n, task in self._partitioned.items()
            },
            outstanding=tuple(outstanding),
            tries={
                self._plan.name_of(n): encode_tries(known)
                for n, task in self._hosted.items()
                if (known := task.known())
            },
        )

    def observe(self, *, messages: int, secs: float) -> None:
        """Learn from how long a batch held up the next one."""
        self._sizer.observe(messages=messages, secs=secs)

    def pending_limit(self, task: int) -> int:
        """How many messages a spout task may have pending."""
        config = self._configs[task]
        if config.max_spout_pending is not None:
            return config.max_spout_pending
        spouts = len(self._hosted) + len(self._partitioned)
        return max(1, int(config.max_pending_bytes / self._message_bytes(task) / spouts))

    def _message_bytes(self, task: int) -> float:
        """What a message of a task has: some are measured as they come, all once encoded.

        The larger one, since what came may hold objects whose size only their encoding shows.
        """
        hosted = self._hosted.get(task)
        taken = hosted.taken_bytes.value if hosted is not None else 0.0
        return max(self._planned_bytes[task].value, taken) or _FIRST_GUESS_BYTES

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending: so that the next batch is ready.

        What a bolt holds over batches must not keep new messages out, since it may wait for them.
        The first one comes alone, since it may be large.
        """
        hosted, batch = self._hosted[task], self._sizer.highest
        if not hosted.taken_bytes.value:
            return 1
        wanted = max(2 * batch, hosted.in_flight + batch)
        return min(self.pending_limit(task), wanted)

    def _plan_hosted(self, number: int, task: HostedTask, share: int) -> list[PlannedLoad]:
        partitions = self._plan.partitions
        wanted = min(share, task.waiting)
        pieces = partitions if wanted >= _SPREAD_FROM * partitions else 1
        planned: list[PlannedLoad] = []
        for piece in range(pieces):
            partition = (number + task.task + piece) % partitions
            count = -(-wanted // (pieces - piece))
            planned += self._load_hosted(task, count, partition, len(planned))
            wanted -= count
        return planned

    def _load_hosted(
        self, task: HostedTask, limit: int, partition: int, lane: int, width: int = 0
    ) -> list[PlannedLoad]:
        planned = []
        for load, attempt in task.plan(limit, self._next(task.task), lane, width):
            ids = task.ids_of(load) if self._note_ids else b""
            planned.append(replace(self._planned(load, partition, attempt), ids=ids))
            nbytes = len(load.packet or b"")
            self._planned_bytes[task.task].note(nbytes / load.count, load.count)
        return planned

    def _plan_partitioned(
        self, spread: Spread, task: PartitionedTask, share: int, *, fresh: bool, now: float
    ) -> list[PlannedLoad]:
        room = max(0, self.pending_limit(task.task) - task.pending)
        # tasks together as many as there are partitions, and one alone, if it has enough for them
        fair = -(-self._plan.partitions // len(self._partitioned))
        wanted = min(self._plan.partitions, max(fair, share // _SPREAD_FROM))
        pieces = task.plan(share, wanted, fresh=fresh, now=now, room=room)
        return self._load_pieces(spread, task, pieces)

    def _load_pieces(
        self, spread: Spread, task: PartitionedTask, pieces: Iterable[Piece]
    ) -> list[PlannedLoad]:
        planned = []
        for lane, piece in enumerate(pieces):
            split = piece.split
            partition = spread.lightest(split.count)
            load = task.load(piece, self._next(task.task), lane)
            planned.append(self._planned(load, partition, piece.attempt, piece.since))
            if split.size:
                self._planned_bytes[task.task].note(split.size / split.count, split.count)
        return planned

    def _plan_replays(
        self, number: int, lots: Iterable[ReplayLot], beside: Sequence[PlannedLoad]
    ) -> list[PlannedLoad]:
        """Dead letters that were asked for again: loads beside those of their spouts' tasks."""
        planned: list[PlannedLoad] = []
        lanes = Counter(one.load.task for one in beside)
        for lot in lots:
            partition = (number + len(planned)) % self._plan.partitions
            planned.append(self._plan_lot(lot, partition, lanes[lot.task]))
            lanes[lot.task] += 1
        return planned

    def _plan_lot(self, lot: ReplayLot, partition: int, lane: int) -> PlannedLoad:
        load = self._replays.load(lot, self._next(lot.task), lane)
        letters = lot.letters if self._plan.exactly_once else ()
        return replace(self._planned(load, partition, lot.attempt), letters=letters)

    def take_up(self, plan: BatchPlan, now: float, *, whole: bool) -> BatchPlan:
        """Go on after the last plan of an earlier driver; return what it can run of it.

        Hosted messages come again from their source. Splits get roots of this driver. Dead letters
        are replayed anew, but if the batch must remain the ``whole`` that it was. If that driver
        has died, ids of hosted messages are written down from now on, for a while.
        """
        self._note_ids = not plan.clean
        self._forget_at = now + _MEMORY_SECS
        for number, hosted in self._hosted.items():
            hosted.remember(plan.left_behind(self._plan.name_of(number)))
        tasks = {self._plan.name_of(task): task for task in (*self._hosted, *self._partitioned)}
        for owner, sequence in plan.sequences.items():
            if owner in tasks:
                self.sequences[tasks[owner]] = sequence
        loads = [
            load
            for planned in plan.loads
            if planned.owner in tasks
            and (load := self._take_up_load(planned, tasks[planned.owner], whole=whole))
        ]
        sequences = {**plan.sequences, **self._sequences()}
        time = self._times.go_on(plan.time)
        return replace(plan, run=self._run, time=time, loads=tuple(loads), sequences=sequences)

    def _take_up_load(self, planned: PlannedLoad, task: int, *, whole: bool) -> PlannedLoad | None:
        """Plan a load of an earlier driver as it was, if that is possible."""
        split, lane = planned.load.split, planned.load.lane
        if split is not None:
            piece = Piece(split, planned.attempt, planned.since)
            load = self._partitioned[task].load(piece, self._next(task), lane)
            return self._planned(load, planned.partition, planned.attempt, planned.since)
        if planned.letters and whole:
            lot = self._replays.take_again(task, planned)
            return lot and self._plan_lot(lot, planned.partition, lane)
        return None

    def _sequences(self) -> dict[str, int]:
        return {self._plan.name_of(task): number for task, number in self.sequences.items()}

    def _planned(self, load: Load, partition: int, attempt: int, since: float = 0.0) -> PlannedLoad:
        self._advance(load)
        owner = self._plan.name_of(load.task)
        return PlannedLoad(
            load=load, partition=partition, attempt=attempt, owner=owner, since=since
        )

    def _next(self, task: int) -> int:
        return self.sequences.get(task, 0)

    def _advance(self, load: Load) -> None:
        if load.first is not None:
            self.sequences[load.task] = sequence_of(load.first) + load.count
