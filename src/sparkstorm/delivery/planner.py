"""What the next batch holds: shares for each spout task, spread over the partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

from sparkstorm.acking.ids import sequence_of
from sparkstorm.config import Config
from sparkstorm.delivery.hosted import HostedTask
from sparkstorm.delivery.partitioned import PartitionedTask, Piece
from sparkstorm.delivery.plans import BatchPlan, Outstanding, PlannedLoad
from sparkstorm.delivery.replays import Replays
from sparkstorm.delivery.sizing import BatchSizer
from sparkstorm.execution.reading import Load
from sparkstorm.planning.plan import Plan

__all__ = ["BatchPlanner"]

_SPREAD_FROM = 64
"""Hosted messages are spread over the partitions if each gets at least this many."""

_FIRST_GUESS_BYTES = 100.0


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
        run: str,
    ) -> None:
        config = plan.config
        self.sequences: dict[int, int] = {}
        self._plan = plan
        self._hosted = hosted
        self._partitioned = partitioned
        self._replays = replays
        self._run = run
        self._sizer = BatchSizer(
            config.batch_target_secs, config.batch_min_messages, config.batch_max_messages
        )
        self._message_bytes = _FIRST_GUESS_BYTES
        self._configs: dict[int, Config] = {
            task: config.override(dict(spec.settings))
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
        share = -(-self._sizer.limit // (len(self._hosted) + len(self._partitioned)))
        loads: list[PlannedLoad] = []
        for hosted in self._hosted.values():
            loads += self._plan_hosted(number, hosted, share)
        for partitioned in self._partitioned.values():
            loads += self._plan_partitioned(number, partitioned, share, fresh=fresh, now=now)
        loads += self._plan_replays(number, share, loads, fresh=fresh, now=now)
        if not loads:
            return None
        firsts = {p.load.first for p in loads if p.load.first is not None}
        return replace(self.settled(number, firsts), loads=tuple(loads))

    def settled(self, number: int, planned: Collection[int] = ()) -> BatchPlan:
        """The plan of a batch of which nothing is left to do, with what is owed beside it.

        ``planned`` are the first roots of loads that are in the batch and so not owed.
        """
        outstanding: list[Outstanding] = []
        for partitioned in self._partitioned.values():
            outstanding += partitioned.outstanding(planned)
        return BatchPlan(
            number=number,
            run=self._run,
            sequences=self._sequences(),
            cursors={self.owner(n): task.spout.snapshot() for n, task in self._partitioned.items()},
            outstanding=tuple(outstanding),
        )

    def observe(self, *, messages: int, secs: float) -> None:
        """Learn from how long a batch took."""
        self._sizer.observe(messages=messages, secs=secs)

    def pending_limit(self, task: int) -> int:
        """How many messages a spout task may have pending."""
        config = self._configs[task]
        if config.max_spout_pending is not None:
            return config.max_spout_pending
        spouts = len(self._hosted) + len(self._partitioned)
        return max(1, int(config.max_pending_bytes / self._message_bytes / spouts))

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending: so that the next batch is ready.

        What a bolt holds over batches must not keep new messages out, since it may wait for them.
        """
        batch = self._sizer.limit
        wanted = max(2 * batch, self._hosted[task].in_flight + batch)
        return min(self.pending_limit(task), wanted)

    def _plan_hosted(self, number: int, task: HostedTask, share: int) -> list[PlannedLoad]:
        partitions = self._plan.partitions
        wanted = min(share, task.waiting)
        pieces = partitions if wanted >= _SPREAD_FROM * partitions else 1
        planned: list[PlannedLoad] = []
        for piece in range(pieces):
            partition = (number + task.task + piece) % partitions
            made = task.plan(-(-wanted // pieces), self._next(task.task), len(planned))
            for load, attempt in made:
                planned.append(self._planned(load, partition, attempt))
                self._learn_size(len(load.packet or b"") / load.count)
        return planned

    def _plan_partitioned(
        self, number: int, task: PartitionedTask, share: int, *, fresh: bool, now: float
    ) -> list[PlannedLoad]:
        partitions = self._plan.partitions
        room = max(0, self.pending_limit(task.task) - task.pending)
        weights = [0] * partitions
        planned = []
        splits = task.plan(min(share, room), partitions, fresh=fresh, now=now)
        for lane, piece in enumerate(splits):
            split = piece.split
            lightest = min(range(partitions), key=lambda p: (weights[p], (p - number) % partitions))
            weights[lightest] += split.count
            load = task.load(piece, self._next(task.task), lane)
            planned.append(self._planned(load, lightest, piece.attempt, piece.since))
            if split.size:
                self._learn_size(split.size / split.count)
        return planned

    def _plan_replays(
        self, number: int, limit: int, beside: Sequence[PlannedLoad], *, fresh: bool, now: float
    ) -> list[PlannedLoad]:
        """Dead letters that were asked for again: loads beside those of their spouts' tasks."""
        planned: list[PlannedLoad] = []
        for lot in self._replays.take(limit, fresh=fresh, now=now):
            lane = sum(p.load.task == lot.task for p in (*beside, *planned))
            load = self._replays.load(lot, self._next(lot.task), lane)
            partition = (number + len(planned)) % self._plan.partitions
            planned.append(self._planned(load, partition, lot.attempt))
        return planned

    def owner(self, task: int) -> str:
        """A spout task as ``component/index``: a name that outlives the numbering of tasks."""
        component = self._plan.component_of(task)
        return f"{component}/{task - self._plan.tasks[component].start}"

    def take_up(self, plan: BatchPlan) -> BatchPlan:
        """Go on after the last plan of an earlier driver; return what it can run of it.

        Hosted messages come again from their source. Splits get roots of this driver.
        """
        tasks = {self.owner(task): task for task in (*self._hosted, *self._partitioned)}
        for owner, sequence in plan.sequences.items():
            if owner in tasks:
                self.sequences[tasks[owner]] = sequence
        loads = []
        for planned in plan.loads:
            split = planned.load.split
            if split is not None and planned.owner in tasks:
                task = tasks[planned.owner]
                piece = Piece(split, planned.attempt, planned.since)
                load = self._partitioned[task].load(piece, self._next(task), planned.load.lane)
                loads.append(self._planned(load, planned.partition, planned.attempt, planned.since))
        sequences = {**plan.sequences, **self._sequences()}
        return replace(plan, run=self._run, loads=tuple(loads), sequences=sequences)

    def _sequences(self) -> dict[str, int]:
        return {self.owner(task): number for task, number in self.sequences.items()}

    def _planned(self, load: Load, partition: int, attempt: int, since: float = 0.0) -> PlannedLoad:
        self._advance(load)
        owner = self.owner(load.task)
        return PlannedLoad(
            load=load, partition=partition, attempt=attempt, owner=owner, since=since
        )

    def _next(self, task: int) -> int:
        return self.sequences.get(task, 0)

    def _advance(self, load: Load) -> None:
        if load.first is not None:
            self.sequences[load.task] = sequence_of(load.first) + load.count

    def _learn_size(self, message_bytes: float) -> None:
        self._message_bytes += 0.2 * (max(message_bytes, 1.0) - self._message_bytes)
