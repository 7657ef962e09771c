"""What a batch holds: its loads by partition, durable before Spark hears its number."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from sparkstorm.acking.lineage import Indexes
from sparkstorm.acking.tally import RootRange
from sparkstorm.components.spout import Split
from sparkstorm.execution.batch import BatchInfo, Retried
from sparkstorm.execution.reading import Load, Signal

__all__ = ["BatchPlan", "Outstanding", "PlannedLoad", "runs_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoad:
    """A load, where it is read, which try of its messages it is, and whose (``owner``).

    ``since`` is when the first attempt began, in seconds since 1970. ``ids`` are digests of hosted
    messages' ids, written down only if a driver before this one died. ``letters`` are the
    dead letters that it replays, in order, as JSON; kept only if the batch must remain what it is.
    """

    load: Load
    partition: int
    attempt: int = 1
    owner: str = ""
    since: float = 0.0
    ids: bytes = b""
    letters: tuple[str, ...] = ()

    @property
    def range(self) -> RootRange | None:
        """The roots that it starts; None if it is untracked."""
        return None if self.load.first is None else RootRange(self.load.first, self.load.count)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outstanding:
    """A split of a partitioned spout that is neither acked nor in a running batch.

    ``owner`` is the spout task as ``component/index``: task numbers shift when components are
    added, so nothing durable is named by them. ``since`` is when the first attempt began, in
    seconds since 1970. ``width`` is above 0 for suspects: see :mod:`remembered`.
    """

    owner: str
    split: Split
    attempt: int
    since: float = 0.0
    width: int = 0

    def cut(self, count: int) -> "tuple[Outstanding, Outstanding | None]":
        """Return the first so many of its messages, and the others if there are any."""
        split, whole = self.split, self.split.count
        if count >= whole:
            return self, None
        parts = split.narrow(range(count)), split.narrow(range(count, whole))
        return replace(self, split=parts[0]), replace(self, split=parts[1])


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
            (:func:`remembered.encode_tries`).
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
    signals: tuple[Signal, ...] = ()
    ticks: tuple[Signal, ...] = ()
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

    def by_partition(self, partitions: int) -> dict[int, list[Load | Signal]]:
        """What each of so many partitions reads, if it has anything to read."""
        found: dict[int, list[Load | Signal]] = {}
        for planned in self.loads:
            found.setdefault(planned.partition, []).append(planned.load)
        for signal in (*self.signals, *self.ticks):
            found.setdefault(signal.target % partitions, []).append(signal)
        return found

    def to_json(self) -> bytes:
        """Return it as bytes for :meth:`from_json`; hosted messages' values are not kept."""
        data = {
            "number": self.number,
            "run": self.run,
            "time": self.time,
            "loads": [_load_to_json(planned) for planned in self.loads],
            "sequences": dict(self.sequences),
            "cursors": dict(self.cursors),
            "outstanding": [
                {
                    "owner": o.owner,
                    "split": _split_to_json(o.split),
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
            loads=tuple(_load_from_json(item) for item in values["loads"]),
            sequences=values["sequences"],
            cursors=values["cursors"],
            outstanding=tuple(
                Outstanding(
                    owner=o["owner"],
                    split=_split_from_json(o["split"]),
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


def _load_to_json(planned: PlannedLoad) -> dict[str, Any]:
    load = planned.load
    return {
        "component": load.component,
        "task": load.task,
        "stream": load.stream,
        "lane": load.lane,
        "count": load.count,
        "first": load.first,
        "split": None if load.split is None else _split_to_json(load.split),
        "partition": planned.partition,
        "attempt": planned.attempt,
        "owner": planned.owner,
        "since": planned.since,
        "ids": base64.b64encode(planned.ids).decode(),
        "letters": planned.letters,
    }


def _load_from_json(data: dict[str, Any]) -> PlannedLoad:
    split, ids = data.pop("split"), base64.b64decode(data.pop("ids"))
    letters = tuple(data.pop("letters"))
    rest = {name: data.pop(name) for name in ("partition", "attempt", "owner", "since")}
    load = Load(split=None if split is None else _split_from_json(split), **data)
    return PlannedLoad(load=load, ids=ids, letters=letters, **rest)


def _split_to_json(split: Split) -> dict[str, Any]:
    return {
        "count": split.count,
        "data": split.data,
        "size": split.size,
        "only": None if split.only is None else runs_of(np.array(split.only, np.int64)),
        "whole": split.whole,
        "kept": split.kept,
    }


def _split_from_json(data: dict[str, Any]) -> Split:
    only, kept = data["only"], data["kept"]
    return Split(
        count=data["count"],
        data=data["data"],
        size=data["size"],
        only=None if only is None else tuple(n for start, stop in only for n in range(start, stop)),
        whole=data["whole"],
        kept=None if kept is None else tuple(kept),
    )


def runs_of(numbers: Indexes) -> list[tuple[int, int]]:
    """Compress numbers into half-open ranges, in their order.

    >>> runs_of(np.array([0, 1, 2, 5]))
    [(0, 3), (5, 6)]
    """
    edges = np.flatnonzero(np.diff(numbers) != 1)
    starts = numbers[np.concatenate([[0], edges + 1])[: len(numbers)]]
    stops = numbers[np.concatenate([edges, [-1]])[: len(numbers)]] + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
