"""The plan of a batch: its loads by partition, durable before Spark hears the batch's number."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import BatchInfo, Retried
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.sources.blame import Tries, decode_tries
from sparkstorm.sources.planned import (
    Outstanding,
    PlannedLoad,
    load_from_json,
    load_to_json,
    outstanding_from_json,
    outstanding_to_json,
)
from sparkstorm.sources.source import Progress

__all__ = ["BatchPlan"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The plan of one batch.

    Attributes:
        number: the batch's number; Spark's, too.
        run: names the driver's life that planned the batch.
        time: the batch's time, in seconds since 1970 (:mod:`batch_clock`); kept over restarts,
            since bolts decide by the time. 0 in plans of versions without times.
        loads: the messages to read.
        sequences: for each spout task (``component/index``), the number of its next message.
        cursors: for each partitioned spout task, how far the task has planned (its ``snapshot``).
        outstanding: splits given out earlier and still owed, without the splits in this batch.
        signals: packets of the engine for single tasks; not kept over restarts.
        ticks: the tick tuples of the batch; not kept over restarts.
        tries: for each hosted spout task, how often its messages were tried
            (:func:`sparkstorm.sources.blame.encode_tries`).
        clean: whether the driver ended in good order after the batch.
        settled: whether the batch was committed, and its verdicts given, when the plan was written;
            a plan always says so of the batches before.
    """

    number: int
    run: str
    time: float = 0.0
    loads: tuple[PlannedLoad, ...] = ()
    sequences: Mapping[str, int] = field(default_factory=dict)
    cursors: Mapping[str, Any] = field(default_factory=dict)
    outstanding: tuple[Outstanding, ...] = ()
    signals: tuple[SystemPacket, ...] = ()
    ticks: tuple[SystemPacket, ...] = ()
    tries: Mapping[str, str] = field(default_factory=dict)
    clean: bool = False
    settled: bool = False

    @property
    def messages(self) -> int:
        """How many messages the batch holds, untracked messages included."""
        return sum(planned.load.count for planned in self.loads)

    @property
    def ranges(self) -> tuple[RootRange, ...]:
        """The roots that begin in the batch, ascending."""
        return tuple(sorted(p.range for p in self.loads if p.range is not None))

    def info(self, excluded: Sequence[RootRange] = (), tries: int = 1) -> BatchInfo:
        """Return the facts for the batch's tasks, when the batch is run for so many times."""
        retried = [
            Retried(p.load.first, p.load.count, p.attempt + tries - 1)
            for p in self.loads
            if p.attempt + tries > 2 and p.load.first is not None
        ]
        return BatchInfo(
            number=self.number,
            time=self.time,
            run=self.run,
            ranges=self.ranges,
            retried=tuple(sorted(retried, key=lambda r: r.first)),
            excluded=tuple(excluded),
        )

    def by_partition(self, partitions: int) -> dict[int, list[Load | SystemPacket]]:
        """Return the loads and packets of each partition that has something to read."""
        found: dict[int, list[Load | SystemPacket]] = {}
        for planned in self.loads:
            found.setdefault(planned.partition, []).append(planned.load)
        for signal in (*self.signals, *self.ticks):
            found.setdefault(signal.target % partitions, []).append(signal)
        return found

    def progress_of(self, owner: str) -> Progress:
        """Return how far a source had come when the plan was written."""
        return Progress(
            cursor=self.cursors.get(owner),
            outstanding=[item for item in self.outstanding if item.owner == owner],
            tries=list(self.left_behind(owner).values()),
        )

    def left_behind(self, owner: str) -> dict[int, Tries]:
        """Return the tries of a hosted task's messages, by digest, as this plan's driver left them.

        If that driver died, the messages that ran then are suspects.
        """
        found = {tries.digest: tries for tries in decode_tries(self.tries.get(owner, ""))}
        if self.clean:
            return found
        width = self.messages
        for planned in self.loads:
            if planned.owner == owner:
                attempt = planned.attempt + (width == 1)
                for digest in np.frombuffer(planned.ids, np.uint64).tolist():
                    found[digest] = Tries(digest, attempt, width)
        return found

    def to_json(self) -> bytes:
        """Return the plan as bytes for :meth:`from_json`, without the values of hosted messages."""
        data = {
            "number": self.number,
            "run": self.run,
            "time": self.time,
            "loads": [load_to_json(planned) for planned in self.loads],
            "sequences": dict(self.sequences),
            "cursors": dict(self.cursors),
            "outstanding": [outstanding_to_json(item) for item in self.outstanding],
            "tries": dict(self.tries),
            "clean": self.clean,
            "settled": self.settled,
        }
        return json.dumps(data).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "BatchPlan":
        """Build a plan from :meth:`to_json`'s bytes."""
        values = json.loads(data)
        return cls(
            number=values["number"],
            run=values["run"],
            time=values.get("time", 0.0),
            loads=tuple(load_from_json(item) for item in values["loads"]),
            sequences=values["sequences"],
            cursors=values["cursors"],
            outstanding=tuple(outstanding_from_json(item) for item in values["outstanding"]),
            tries=values["tries"],
            clean=values["clean"],
            settled=values["settled"],
        )
