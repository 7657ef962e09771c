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
    split_from_json,
    split_to_json,
)

__all__ = ["BatchPlan"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """One batch.

    Attributes:
        number: the batch's number; that of Spark, too.
        run: names the driver's life that planned it.
        time: when it was planned, in seconds since 1970 (:mod:`batch_clock`); kept over restarts,
            since bolts decide by it. 0 in plans of versions that did not write it down.
        loads: what it reads.
        sequences: for each spout task (``component/index``), the number of its next message.
        cursors: for each partitioned spout task, how far it has planned (its ``snapshot``).
        outstanding: splits given out earlier and still owed, but for those in this batch.
        signals: what the engine tells single tasks in it; not kept over restarts.
        ticks: the tick tuples that ride in it; not kept either.
        tries: for each hosted spout task, how often its messages were tried
            (:func:`sparkstorm.sources.blame.encode_tries`).
        clean: whether its driver has ended in good order after it.
        settled: whether its batch was committed, and its messages had their verdicts, when it was
            written; a plan always says so of the batches before it.
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
        """How many messages it holds, untracked ones included."""
        return sum(planned.load.count for planned in self.loads)

    @property
    def ranges(self) -> tuple[RootRange, ...]:
        """The roots that begin in it, ascending."""
        return tuple(sorted(p.range for p in self.loads if p.range is not None))

    def info(self, excluded: Sequence[RootRange] = (), tries: int = 1) -> BatchInfo:
        """What its tasks need to know, when it is run for so many times."""
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
        """What each of so many partitions reads, if it has anything to read."""
        found: dict[int, list[Load | SystemPacket]] = {}
        for planned in self.loads:
            found.setdefault(planned.partition, []).append(planned.load)
        for signal in (*self.signals, *self.ticks):
            found.setdefault(signal.target % partitions, []).append(signal)
        return found

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
        """Return it as bytes for :meth:`from_json`; hosted messages' values are not kept."""
        data = {
            "number": self.number,
            "run": self.run,
            "time": self.time,
            "loads": [load_to_json(planned) for planned in self.loads],
            "sequences": dict(self.sequences),
            "cursors": dict(self.cursors),
            "outstanding": [
                {
                    "owner": o.owner,
                    "split": split_to_json(o.split),
                    "attempt": o.attempt,
                    "since": o.since,
                    "width": o.width,
                }
                for o in self.outstanding
            ],
            "tries": dict(self.tries),
            "clean": self.clean,
            "settled": self.settled,
        }
        return json.dumps(data).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "BatchPlan":
        """Build it from :meth:`to_json`'s bytes."""
        values = json.loads(data)
        return cls(
            number=values["number"],
            run=values["run"],
            time=values.get("time", 0.0),
            loads=tuple(load_from_json(item) for item in values["loads"]),
            sequences=values["sequences"],
            cursors=values["cursors"],
            outstanding=tuple(
                Outstanding(
                    owner=o["owner"],
                    split=split_from_json(o["split"]),
                    attempt=o["attempt"],
                    since=o["since"],
                    width=o["width"],
                )
                for o in values["outstanding"]
            ),
            tries=values["tries"],
            clean=values["clean"],
            settled=values["settled"],
        )
