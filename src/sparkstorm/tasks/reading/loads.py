"""The first stage: read the loads of a partition, and route the messages like any task's emits.

Routing is the processing of the root tuple: it "acks" the seed of each root and emits the copies.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.acking.lineage import Indexes, Lineage, is_ascending
from sparkstorm.acking.tally import RootIndex, RootRange
from sparkstorm.errors import ComponentError, InternalError, SpoutConnectionError
from sparkstorm.metrics import TaskMetrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.dispatch import Delivery, Dispatcher, MisfitError
from sparkstorm.tasks.reading.roots import EXCLUDED, roots_of
from sparkstorm.tasks.reading.rows import LoadRows, gather, skip_counters
from sparkstorm.tasks.reading.splits import Gathered, Misfit
from sparkstorm.tasks.report import Report
from sparkstorm.texts.user_errors import USER_ERRORS, message_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["read_loads"]


def read_loads(
    plan: Plan, partition: int, loads: Sequence[Load | SystemPacket], batch: BatchInfo
) -> tuple[list[Delivery], list[Report]]:
    """Read and route all loads of a partition."""
    deliveries: list[Delivery] = []
    reports: list[Report] = []
    for load in loads:
        if isinstance(load, SystemPacket):
            deliveries.append((plan.home(load.target), load.packet))
            continue
        reader = _Reader(plan, partition, load, batch)
        deliveries += reader.run()
        reports.append(reader.report)
    return deliveries, reports


class _Reader:
    """Reads a load."""

    def __init__(self, plan: Plan, partition: int, load: Load, batch: BatchInfo) -> None:
        self._plan = plan
        self._load = load
        self._batch = batch
        self._dispatcher = Dispatcher(plan, load.task, partition, batch, load.lane)
        self._causes = Causes()
        self.report = Report(load.component, load.task, load.lane)

    def run(self) -> list[Delivery]:
        """Return the packets of the load's tuples; a load that cannot be read fails its roots.

        A split without roots fails the job instead; otherwise its source would hear ack after the
        commit.
        """
        started = time.perf_counter()
        try:
            gathered = gather(self._plan, self._load)
            sent, emitted = self._route(gathered)
            _, positions, misfits = gathered
            empty = self._load.count - _distinct(positions) - len(misfits)
            skipped = skip_counters(self._plan, self._load, empty)
        except InternalError:
            raise
        except USER_ERRORS as error:  # the messages fail, the query lives on
            return self._fail(error)
        outputs = self._dispatcher.outputs
        self.report.traces = self._dispatcher.traces
        self.report.metrics = TaskMetrics(
            emitted=emitted,
            transferred=sum(one.transferred for one in outputs.values()),
            process_secs=time.perf_counter() - started,
            outputs=outputs,
            user=skipped,
        )
        return sent

    def _route(self, gathered: Gathered) -> tuple[list[Delivery], int]:
        """Return the packets of the rows that can be sent, and their number; the others fail."""
        (columns, positions, misfits), load = gathered, self._load
        # Misfits have roots too, which start here and then fail.
        every = np.concatenate([positions, np.array([*misfits], np.int64)])
        is_tracked = self._plan.tracked
        lineage, parents = roots_of(load, self._batch, every, is_tracked=is_tracked)
        acked = np.ones(len(lineage), np.bool_)
        bad, parents = parents[len(positions) :], parents[: len(positions)]
        notes = self._misfits(lineage, acked, bad, misfits.values())
        read = LoadRows.of(self._plan, load, columns, positions, parents)
        self._dispatcher.trace(read.followed(self._batch, lineage))
        kept = np.flatnonzero(parents != EXCLUDED)
        if len(kept) < len(parents):
            read = read.take(kept)
        while True:
            try:
                sent = self._dispatcher.dispatch(lineage, acked, [read])
            except MisfitError as misfit:
                # Final, as for bolts: the same values and grouping fail each further try.
                whys = [Misfit(why, final=True) for why in misfit.faults.values()]
                bad = read.parents[misfit.rows]
                notes += self._misfits(lineage, acked, bad, whys)
                # The dispatcher sent nothing, so the other rows go in a new call.
                read = read.take(np.delete(np.arange(len(read)), misfit.rows))
            else:
                roots = np.array([root for root, _ in notes], np.uint64)
                failed = FailedRoots.first_of_each(roots, [why for _, why in notes])
                return sent + self._dispatcher.fail(failed), len(read)

    def _misfits(
        self,
        lineage: Lineage,
        acked: NDArray[np.bool_],
        numbers: Indexes,
        reasons: Iterable[Misfit],
    ) -> list[tuple[int, Failure]]:
        """Fail unsendable messages, by their numbers among the started roots."""
        notes = []
        for number, why in zip(numbers.tolist(), reasons, strict=True):
            self.report.log("error", f"a message cannot be sent: {why.text}")
            if number >= 0:
                acked[number] = False
                failure = self._failure(why.text, why.reason, final=why.final)
                notes.append((int(lineage.roots[number]), self._causes.share(failure)))
        return notes

    def _fail(self, error: BaseException) -> list[Delivery]:
        load = self._load
        what = load.split.data if load.split else "messages"
        text = f"cannot read {what}: {message_of(error)}"
        away = isinstance(error, SpoutConnectionError)
        if load.first is None and load.split is not None:
            kind = SpoutConnectionError if away else ComponentError
            raise kind(f"spout {load.component!r} {text}") from error
        # An attempt while the source is away must not use up the message's retries.
        failure = replace(self._failure(text), counted=not away)
        self.report.log("error", text)
        if load.first is None:
            return []
        roots = RootIndex([RootRange(load.first, load.count)]).roots()
        return self._dispatcher.fail(FailedRoots.alike(roots, self._causes.share(failure)))

    def _failure(
        self, message: str, reason: Reason = Reason.ERROR, *, final: bool = False
    ) -> Failure:
        load = self._load
        return Failure(
            reason=reason,
            component=load.component,
            task=load.task,
            message=message,
            final=final,
        )


def _distinct(positions: Indexes) -> int:
    """Return the number of different positions; usually they ascend, and need no sorting."""
    return len(positions) if is_ascending(positions) else len(np.unique(positions))
