"""Ended roots: tasks that hold tuples of a failed message hear of the failure in the next batch."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.tally import HeldRoots
from sparkstorm.packets.load import SystemPacket
from sparkstorm.packets.packet import ENGINE, Kind, PacketWriter
from sparkstorm.planning.plan import Plan

__all__ = ["EndedRoots"]


@final
class EndedRoots:
    """Collects the ended roots that single tasks must hear of; not thread-safe.

    A task drops held tuples of a failed root before the tuples of the next attempt come, so that
    nothing counts twice and nothing is held for ever. Only failures are told: a tree with a held
    tuple cannot complete.

    For each open root the driver knows the holders: 12 bytes a pair, until the root has ended. The
    pairs need not outlive the driver: tasks drop tuples held for an earlier driver.
    """

    def __init__(self, plan: Plan) -> None:
        tasks = [task for name in plan.stateful_components() for task in plan.tasks[name]]
        self._can_hold = np.array(tasks, np.int32)
        self._held = HeldRoots.none()
        self._ended: list[HeldRoots] = []

    def note_held(self, held: HeldRoots, pending: NDArray[np.bool_]) -> None:
        """Remember the holders of roots.

        Args:
            held: the pairs of root and holder, as the ackers reported them.
            pending: which of the roots are pending; the holder of any other root is told at once.
        """
        can_hold = np.isin(held.holders, self._can_hold)
        self._tell(held.select(can_hold & ~pending))
        news = held.select(can_hold & pending)
        if len(news):
            every = HeldRoots.concat([self._held, news])
            order = np.lexsort((every.holders, every.roots))
            self._held = _each_once(every.select(order))

    def note_ended(self, acked: U64, failed: FailedRoots) -> None:
        """Forget the holders of these roots; the holders of failed roots are to be told."""
        if len(self._held):
            is_failed = _is_in(failed.roots, self._held.roots)
            self._tell(self._held.select(is_failed))
            ended = is_failed | _is_in(acked, self._held.roots)
            self._held = self._held.select(~ended) if ended.any() else self._held

    def holders(self, roots: U64) -> dict[int, list[int]]:
        """Return the tasks that hold tuples of some roots, for people."""
        mine = self._held.select(np.isin(self._held.roots, roots))
        found: dict[int, list[int]] = {}
        for root, task in zip(mine.roots.tolist(), mine.holders.tolist(), strict=True):
            found.setdefault(root, []).append(task)
        return found

    @property
    def due(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._ended)

    def take(self) -> tuple[SystemPacket, ...]:
        """Return the packets for the next batch, once: each task hears only of roots it holds."""
        if not self._ended:
            return ()
        ended, self._ended = HeldRoots.concat(self._ended), []
        ended = _each_once(ended.select(np.lexsort((ended.roots, ended.holders))))
        edges = np.flatnonzero(np.diff(ended.holders)) + 1
        writer = PacketWriter(ENGINE)
        return tuple(
            SystemPacket(task, writer.roots(Kind.ENDED, task, roots))
            for task, roots in zip(
                ended.holders[np.concatenate([[0], edges])].tolist(),
                np.split(ended.roots, edges),
                strict=True,
            )
        )

    def __repr__(self) -> str:
        told = sum(map(len, self._ended))
        return f"EndedRoots({told} to tell, {len(self._held)} held)"

    def _tell(self, ended: HeldRoots) -> None:
        if len(ended):
            self._ended.append(ended)


def _each_once(pairs: HeldRoots) -> HeldRoots:
    """Return sorted pairs without repetitions."""
    fresh = np.ones(len(pairs), np.bool_)
    fresh[1:] = (np.diff(pairs.roots) != 0) | (np.diff(pairs.holders) != 0)
    return pairs.select(fresh)


def _is_in(some: U64, roots: U64) -> NDArray[np.bool_]:
    """Return which of the roots are among some ascending roots."""
    slots = np.searchsorted(some, roots)
    marks = np.zeros(len(roots), np.bool_)
    inside = slots < len(some)
    marks[inside] = some[slots[inside]] == roots[inside]
    return marks
