"""The chronicle: how the attempts at failed, followed and some good messages went."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.ledger import Verdicts
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.messages.kept import Attempt, Kept
from sparkstorm.batches.messages.lines import MessageLines
from sparkstorm.batches.messages.observer import Observer
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.sources.sources import Sources
from sparkstorm.sources.unfinished import Named
from sparkstorm.tasks.report import Report
from sparkstorm.verdicts import Failure

__all__ = ["Chronicle"]

_MOST_MESSAGES = 10_000
_MOST_NODES = 200_000
"""The limits of memory: about 100 MB at the very most."""

_NAMED_AT_ONCE = 1_000
"""The most failed messages that are named for one verdict: a million may fail at once."""

_MOST_FOLLOWED = 100


@final
class Chronicle:
    """Chooses the messages whose trees are traced, and keeps what becomes of them.

    Traced are, up to a limit: further attempts of failed messages, messages whose name or payload
    contains a followed text, and a message of each spout task in each batch. Of a first attempt
    that fails the failure alone is kept; its next attempt is traced. Nothing here outlives the
    driver. Not thread-safe.

    Args:
        sources: name the messages.
        limit: the most messages that are traced at a time; 0 for none.
    """

    def __init__(self, sources: Sources, limit: int) -> None:
        self.lines = MessageLines()
        self.observer: Observer | None = None
        self._sources = sources
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._watched: dict[int, tuple[Kept, Attempt]] = {}
        self._followed: dict[str, str | None] = {}
        self._nodes = 0

    # --- what people ask -------------------------------------------------------------------------

    def get(self, message: str) -> Kept | None:
        """Return what is kept of a message, by its id."""
        return self._kept.get(message)

    def find(self, message: str) -> Kept | None:
        """Return what is kept of a message, by its id or its name; the newest of that name."""
        named = (kept for kept in reversed(self._kept.values()) if kept.named.name == message)
        return self._kept.get(message) or next(named, None)

    def follow(self, text: str, spout: str | None = None) -> None:
        """Trace messages whose name or payload contains a text, of one spout or of all.

        The payload is looked at by the readers, of all spouts.
        """
        self._followed[text] = spout
        while len(self._followed) > _MOST_FOLLOWED:
            self._followed.pop(next(iter(self._followed)))

    def unfollow(self, text: str) -> None:
        """Follow such messages no longer."""
        self._followed.pop(text, None)

    @property
    def followed(self) -> list[str]:
        """The texts that are followed."""
        return list(self._followed)

    # --- the life of messages --------------------------------------------------------------------

    def begin(self, plan: BatchPlan) -> tuple[RootRange, ...]:
        """Choose the messages of a new batch to trace; return all roots that are traced now."""
        if self._limit:
            chosen = np.array(sorted({*self._retried(plan), *self._wanted(plan)}), np.uint64)
            room = max(0, self._limit - len(self._watched))
            for root, named in self._sources.named(chosen[:room]).items():
                attempt = self._keep(named).begin(plan.number, plan.time, named.attempt)
                attempt.nodes, attempt.lines = {}, self.lines.of(root)
                self._watched[root] = self._kept[named.id], attempt
        return tuple(RootRange(root, 1) for root in sorted(self._watched))

    def take(self, plan: BatchPlan, reports: Sequence[Report]) -> None:
        """Take the tuples that the tasks of a committed batch have told of."""
        self._watch_found(plan, reports)
        for report in reports:
            for root, node in report.traces:
                watched = self._watched.get(root)
                if watched is not None:
                    before = len(watched[1].nodes or ())
                    watched[1].add(node)
                    self._nodes += len(watched[1].nodes or ()) - before
        self._trim()

    def _watch_found(self, plan: BatchPlan, reports: Iterable[Report]) -> None:
        """Watch the messages that tasks have found by their payload."""
        told = {root for report in reports for root, _ in report.traces} - self._watched.keys()
        if told and self._followed:
            for root, named in self._sources.named(np.array(sorted(told), np.uint64)).items():
                attempt = self._keep(named).begin(plan.number, plan.time, named.attempt)
                attempt.lines = self.lines.of(root)
                self._watched[root] = self._kept[named.id], attempt

    def end(self, verdicts: Verdicts, batch: int, now: float) -> None:
        """Note verdicts; the sources must still know the messages by their roots."""
        acked = _among(self._watched, verdicts.acked)
        self.lines.drop(verdicts.acked, but=acked)
        for root in acked:
            kept, attempt = self._watched.pop(root)
            attempt.lines = self.lines.until_end(root)
            attempt.end("acked", now)
            kept.state = "acked"
            self._tell(kept.named, attempt)
        whys = _some_of(verdicts.failed, _among(self._watched, verdicts.failed.roots))
        for root, why in whys.items():
            kept, attempt = self._watched.pop(root)
            attempt.lines = self.lines.until_end(root)
            attempt.end(why.reason.value, now, why)
            self._tell(kept.named, attempt)
        others = verdicts.failed.select(
            ~np.isin(verdicts.failed.roots, np.array([*whys], np.uint64))
        )
        self._name_failed(others.slice(0, _NAMED_AT_ONCE), batch, now)

    def _name_failed(self, failed: FailedRoots, batch: int, now: float) -> None:
        whys = dict(failed.items())
        for root, named in self._sources.named(failed.roots).items():
            attempt = self._keep(named).begin(batch, named.since, named.attempt)
            attempt.lines = self.lines.until_end(root)
            attempt.end(whys[root].reason.value, now, whys[root])
            self._tell(named, attempt)

    def _tell(self, named: Named, attempt: Attempt) -> None:
        if self.observer is not None:
            self.observer.attempt_ended(named, attempt.view())

    def _keep(self, named: Named) -> Kept:
        kept = self._kept.get(named.id)
        if kept is None:
            kept = self._kept[named.id] = Kept(named)
        self._kept.move_to_end(named.id)
        return kept

    def _trim(self) -> None:
        while len(self._kept) > _MOST_MESSAGES:
            _, gone = self._kept.popitem(last=False)
            self._nodes -= gone.nodes
        for kept in list(self._kept.values()) if self._nodes > _MOST_NODES else ():
            self._nodes -= kept.nodes
            kept.drop_trees()
            if self._nodes <= _MOST_NODES // 2:
                break

    # --- the choice ------------------------------------------------------------------------------

    def _retried(self, plan: BatchPlan) -> list[int]:
        roots: list[int] = []
        for planned in plan.loads:
            if planned.attempt > 1 and planned.load.first is not None:
                first = planned.load.first
                roots += range(first, first + min(planned.load.count, self._limit - len(roots)))
        return roots

    def _wanted(self, plan: BatchPlan) -> list[int]:
        """Return the first root of the first load of each spout task, and the followed roots."""
        firsts: dict[int, int] = {}
        for planned in plan.loads:
            if planned.load.first is not None and planned.load.count:
                firsts.setdefault(planned.load.task, planned.load.first)
        return [*firsts.values(), *self._followed_in(plan)]

    def _followed_in(self, plan: BatchPlan) -> list[int]:
        if not self._followed:
            return []
        ranges = [planned.range for planned in plan.loads if planned.range is not None]
        roots = [np.arange(one.first, one.first + one.count, dtype=np.uint64) for one in ranges]
        named = self._sources.named(np.sort(np.concatenate(roots))) if roots else {}
        return [root for root, one in named.items() if self._is_followed(one)]

    def _is_followed(self, named: Named) -> bool:
        return any(
            text in named.name and spout in (None, named.component)
            for text, spout in self._followed.items()
        )


def _among(watched: Iterable[int], roots: U64) -> list[int]:
    """Return the watched roots among some ascending roots."""
    mine = np.array([*watched], np.uint64)
    found: list[int] = mine[np.isin(mine, roots, assume_unique=True)].tolist()
    return found


def _some_of(failed: FailedRoots, roots: Sequence[int]) -> dict[int, Failure]:
    return dict(failed.select(np.isin(failed.roots, np.array(roots, np.uint64))).items())
