"""Planned loads and outstanding splits: the parts of a batch plan that name a source's messages."""

import base64
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparkstorm.acking.lineage import Indexes
from sparkstorm.acking.tally import RootRange
from sparkstorm.components.spout import Split
from sparkstorm.packets.load import Load
from sparkstorm.verdicts import Failure

__all__ = [
    "Outstanding",
    "PlannedLoad",
    "load_from_json",
    "load_to_json",
    "outstanding_from_json",
    "outstanding_to_json",
    "runs_of",
    "split_from_json",
    "split_to_json",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoad:
    """A load in the plan of a batch.

    Attributes:
        load: the messages.
        partition: the partition that reads them.
        attempt: the number of their attempt, from 1.
        owner: the spout's task as ``component/index``.
        since: when the first attempt began, in seconds since 1970.
        ids: digests of hosted messages' ids, written down only if an earlier driver died.
        letters: the replayed dead letters as JSON, in order; kept only if the batch must remain as
            planned.
    """

    load: Load
    partition: int = 0
    attempt: int = 1
    owner: str = ""
    since: float = 0.0
    ids: bytes = b""
    letters: tuple[str, ...] = ()

    @property
    def range(self) -> RootRange | None:
        """The roots of the load; None if the load is untracked."""
        return None if self.load.first is None else RootRange(self.load.first, self.load.count)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outstanding:
    """A split of a partitioned spout that is neither acked nor in a running batch.

    Attributes:
        owner: the spout's task as ``component/index``. Task numbers shift when components are
        added,
            so nothing durable is named by them.
        split: the split.
        attempt: the number of its next attempt.
        since: when the first attempt began, in seconds since 1970.
        width: above 0 for suspects (:mod:`sparkstorm.sources.blame`).
        failure: why the messages wait, in brief; for people. None if they have not failed.
    """

    owner: str
    split: Split
    attempt: int
    since: float = 0.0
    width: int = 0
    failure: Failure | None = None

    @property
    def messages(self) -> int:
        """How many messages wait."""
        return self.split.count

    def cut(self, count: int) -> "tuple[Outstanding, Outstanding | None]":
        """Return the first so many messages, and the others if there are any."""
        split, whole = self.split, self.split.count
        if count >= whole:
            return self, None
        parts = split.narrow(range(count)), split.narrow(range(count, whole))
        return replace(self, split=parts[0]), replace(self, split=parts[1])


def load_to_json(planned: PlannedLoad) -> dict[str, Any]:
    """Return a planned load as JSON values; the tuples of a hosted one are left out."""
    load = planned.load
    return {
        "component": load.component,
        "task": load.task,
        "stream": load.stream,
        "lane": load.lane,
        "count": load.count,
        "first": load.first,
        "split": None if load.split is None else split_to_json(load.split),
        "partition": planned.partition,
        "attempt": planned.attempt,
        "owner": planned.owner,
        "since": planned.since,
        "ids": base64.b64encode(planned.ids).decode(),
        "letters": planned.letters,
    }


def load_from_json(data: dict[str, Any]) -> PlannedLoad:
    """Build a planned load from :func:`load_to_json`'s values."""
    split, ids = data.pop("split"), base64.b64decode(data.pop("ids"))
    letters = tuple(data.pop("letters"))
    rest = {name: data.pop(name) for name in ("partition", "attempt", "owner", "since")}
    load = Load(split=None if split is None else split_from_json(split), **data)
    return PlannedLoad(load=load, ids=ids, letters=letters, **rest)


def outstanding_to_json(item: Outstanding) -> dict[str, Any]:
    """Return an outstanding split as JSON values."""
    return {
        "owner": item.owner,
        "split": split_to_json(item.split),
        "attempt": item.attempt,
        "since": item.since,
        "width": item.width,
        "failure": None if item.failure is None else item.failure.to_json(),
    }


def outstanding_from_json(data: dict[str, Any]) -> Outstanding:
    """Build an outstanding split from :func:`outstanding_to_json`'s values."""
    failure = data.get("failure")
    return Outstanding(
        owner=data["owner"],
        split=split_from_json(data["split"]),
        attempt=data["attempt"],
        since=data["since"],
        width=data["width"],
        failure=None if failure is None else Failure.from_json(failure),
    )


def split_to_json(split: Split) -> dict[str, Any]:
    """Return a split as JSON values."""
    return {
        "count": split.count,
        "data": split.data,
        "size": split.size,
        "only": None if split.only is None else runs_of(np.array(split.only, np.int64)),
        "whole": split.whole,
        "kept": split.kept,
    }


def split_from_json(data: dict[str, Any]) -> Split:
    """Build a split from :func:`split_to_json`'s values."""
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
