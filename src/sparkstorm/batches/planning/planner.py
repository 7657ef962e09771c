"""The planner: a batch has a share for each source, spread over the partitions."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import final

from sparkstorm.batches.planning.batch_clock import BatchClock
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.planning.sizing import BatchSizer
from sparkstorm.batches.planning.spread import Spread
from sparkstorm.clock import Clock
from sparkstorm.config import Config
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.blame import company_of, encode_tries
from sparkstorm.sources.planned import Outstanding, PlannedLoad
from sparkstorm.sources.source import Order, RootNumbers, Source
from sparkstorm.sources.sources import Sources

__all__ = ["BatchPlanner"]

_FIRST_GUESS_BYTES = 100.0
"""The size of messages that only executors know, until their spout tells it."""

_MEMORY_SECS = 3600.0
"""How long messages of an earlier driver may come again, and ids are written down."""


@final
class BatchPlanner:
    """Plans batches from the sources, within the limits of pending messages.

    Args:
        plan: the topology's plan.
        sources: all sources of the topology.
        clock: the time.
        run: names this driver's life.
    """

    def __init__(self, plan: Plan, sources: Sources, clock: Clock, run: str) -> None:
        config = plan.config
        self._plan = plan
        self._sources = sources
        self._clock = clock
        self._times = BatchClock(clock)
        self._run = run
        self._numbers = RootNumbers()
        self._sizer = BatchSizer(
            config.batch_target_secs,
            config.batch_most_secs,
            config.batch_min_messages,
            config.batch_max_messages,
        )
        self._note_ids = False
        self._forget_at = math.inf
        self._configs: dict[str, Config] = {
            spec.id: plan.settings(spec.id) for spec in plan.topology.spouts
        }

    # --- the next batch --------------------------------------------------------------------------

    def plan(self, number: int, *, fresh: bool, now: float) -> BatchPlan | None:
        """Plan a batch, or return None if there is nothing to do.

        Args:
            number: the batch's number.
            fresh: whether sources are asked for new messages, not only for retries.
            now: the time.
        """
        if now > self._forget_at:
            self._note_ids, self._forget_at = False, math.inf
            for source in self._sources:
                source.forget_earlier()
        self._numbers.begin_batch()
        # Suspects and others take turns, so that neither holds back the other.
        loads = self._plan_suspects(number) if number % 2 else []
        loads = loads or self._plan_others(number, fresh=fresh, now=now)
        loads = loads or self._plan_suspects(number)
        return self._with_progress(number, loads) if loads else None

    def settled(self, number: int) -> BatchPlan:
        """Return a plan without loads, with the progress of all sources."""
        return self._with_progress(number, [])

    def observe(self, *, messages: int, secs: float) -> None:
        """Learn from how long a batch held up the next one."""
        self._sizer.observe(messages=messages, secs=secs)

    def _plan_suspects(self, number: int) -> list[PlannedLoad]:
        """Plan a piece of the suspects in the smallest company."""
        width = min((width for source in self._sources for width in source.widths), default=0)
        left = min(company_of(width), self._sizer.limit)
        spread = Spread(self._plan.partitions, number)
        loads: list[PlannedLoad] = []
        for source in self._sources if width else ():
            if left <= 0:
                break
            planned = source.plan_suspects(self._order(left), width)
            loads += _placed(planned, spread)
            left -= sum(one.load.count for one in planned)
        return loads

    def _plan_others(self, number: int, *, fresh: bool, now: float) -> list[PlannedLoad]:
        """Fill a batch: each source in turn has its share of the room that others have left."""
        left, spread = self._sizer.limit, Spread(self._plan.partitions, number)
        loads: list[PlannedLoad] = []
        turns = self._turns(number)
        for others, source in zip(reversed(range(len(turns))), turns, strict=True):
            order = self._order(
                -(-left // (others + 1)), fresh=fresh, now=now, room=self._room(source)
            )
            planned = source.plan(order)
            loads += _placed(planned, spread)
            left -= sum(one.load.count for one in planned)
        return loads

    def _turns(self, number: int) -> list[Source]:
        """Return the sources, another one first each time, lest the last get nothing ever."""
        ready = [source for source in self._sources if source.ready]
        first = number % max(1, len(ready))
        return ready[first:] + ready[:first]

    def _order(
        self, limit: int, *, fresh: bool = False, now: float | None = None, room: int = 1 << 62
    ) -> Order:
        tasks = max(1, len(self._sources.partitioned))
        return Order(
            limit=limit,
            now=self._clock.monotonic() if now is None else now,
            numbers=self._numbers,
            fresh=fresh,
            room=room,
            partitions=self._plan.partitions,
            pieces=-(-self._plan.partitions // tasks),  # so that no partition is idle
            with_ids=self._note_ids,
        )

    def _with_progress(self, number: int, loads: Sequence[PlannedLoad]) -> BatchPlan:
        planned = {one.load.first for one in loads if one.load.first is not None}
        progress = {one.owner: one.progress(planned) for one in self._sources if one.owner}
        outstanding: list[Outstanding] = []
        for one in progress.values():
            outstanding += one.outstanding
        return BatchPlan(
            number=number,
            run=self._run,
            time=self._times.now(),
            loads=tuple(loads),
            sequences=self._sequences(),
            cursors={
                owner: one.cursor for owner, one in progress.items() if one.cursor is not None
            },
            outstanding=tuple(outstanding),
            tries={n: encode_tries(one.tries) for n, one in progress.items() if one.tries},
        )

    def _sequences(self) -> dict[str, int]:
        return {self._plan.name_of(task): n for task, n in self._numbers.sequences.items()}

    # --- limits ----------------------------------------------------------------------------------

    def pending_limit(self, source: Source) -> int:
        """How many messages a source may have pending."""
        config = self._configs[source.component]
        if config.max_spout_pending is not None:
            return config.max_spout_pending
        each = source.message_bytes or _FIRST_GUESS_BYTES
        return max(1, int(config.max_pending_bytes / each / len(self._sources)))

    def intake_limit(self, task: int) -> int:
        """How many messages a hosted task may have pending, so that the next batch is ready.

        Messages that a bolt holds over batches must not keep new messages out: the bolt may wait
        for them. The first message comes alone, since it may be large.
        """
        source, batch = self._sources.task(task), self._sizer.highest
        if not source.message_bytes:
            return 1
        wanted = max(2 * batch, source.in_flight + batch)
        return min(self.pending_limit(source), wanted)

    def _room(self, source: Source) -> int:
        if not source.component:
            return 1 << 62
        return max(0, self.pending_limit(source) - source.pending)

    # --- after another driver --------------------------------------------------------------------

    def adopt(self, plan: BatchPlan, now: float, *, whole: bool) -> BatchPlan:
        """Go on after the last plan of an earlier driver; return the part that can be run again.

        Hosted messages come again from their source. Splits get roots of this driver. Dead letters
        are replayed anew, unless the batch must remain the ``whole`` that it was. If the driver has
        died, ids of hosted messages are written down from now on, for a while.
        """
        self._note_ids = not plan.clean
        self._forget_at = now + _MEMORY_SECS
        tasks = {source.owner for source in self._sources if source.owner}
        for owner, sequence in plan.sequences.items():
            if owner in tasks:
                self._numbers.sequences[self._task_of(owner)] = sequence
        loads = [
            load
            for planned in plan.loads
            if planned.owner in tasks and (load := self._adopt(planned, now, whole=whole))
        ]
        sequences = {**plan.sequences, **self._sequences()}
        time = self._times.go_on(plan.time)
        return replace(plan, run=self._run, time=time, loads=tuple(loads), sequences=sequences)

    def rerun(self, plan: BatchPlan, *, width: int, now: float) -> BatchPlan:
        """Plan an adopted batch anew, since it is not run as it was.

        If the earlier driver died, the messages of the batch are suspects: only a piece of it is
        run now.

        Args:
            plan: the adopted part of the batch.
            width: how many messages the whole batch held; 0 if the driver ended in good order.
            now: the time.
        """
        self._numbers.begin_batch()
        kept: list[PlannedLoad] = []
        for planned in plan.loads:
            if planned.load.first is None:
                kept.append(planned)
            else:
                self._sources.source_of(planned).take_back(planned, width, now)
        if width:
            loads = kept + self._plan_suspects(plan.number)
        else:
            loads = kept + self._plan_others(plan.number, fresh=False, now=now)
        return replace(self._with_progress(plan.number, loads), time=plan.time)

    def _adopt(self, planned: PlannedLoad, now: float, *, whole: bool) -> PlannedLoad | None:
        task = self._task_of(planned.owner)  # its number then may have been another
        planned = replace(planned, load=replace(planned.load, task=task))
        order = self._order(planned.load.count, now=now)
        return self._sources.source_of(planned).adopt(planned, order, whole=whole)

    def _task_of(self, owner: str) -> int:
        component, _, index = owner.rpartition("/")
        return self._plan.tasks[component][int(index)]


def _placed(planned: Sequence[PlannedLoad], spread: Spread) -> list[PlannedLoad]:
    """Give each load a partition."""
    return [replace(one, partition=spread.lightest(one.load.count)) for one in planned]
