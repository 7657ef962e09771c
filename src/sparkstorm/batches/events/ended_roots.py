"""What the engine itself tells tasks: roots that have ended without the tuples they hold."""

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
    """Collects what the next batch has to tell single tasks; not thread-safe.

    A task that holds tuples must hear of roots that failed without it, before it sees the tuples
    of the next attempt: it drops what it holds of them, so that nothing counts twice and nothing
    is held for ever. Only roots that failed: a tree with a held tuple cannot complete.

    So of each open root is known who holds it: 12 bytes for each pair, until the root has ended.
    Nothing of it need outlive the driver: tasks drop what they hold for an earlier one.
    """

    def __init__(self, plan: Plan) -> None:
        tasks = [task for name in plan.stateful_components() for task in plan.tasks[name]]
        self._can_hold = np.array(tasks, np.int32)
        self._held = HeldRoots.none()
        self._ended: list[HeldRoots] = []

    def note_held(self, held: HeldRoots, pending: NDArray[np.bool_]) -> None:
        """Remember who said that it holds which roots.

        Args:
            held: each pair that the ackers were told of.
            pending: which of these roots are pending; whoever holds another is told so at once.
        """
        can_hold = np.isin(held.holders, self._can_hold)
        self._tell(held.select(can_hold & ~pending))
        news = held.select(can_hold & pending)
        if len(news):
            every = HeldRoots.concat([self._held, news])
            order = np.lexsort((every.holders, every.roots))
            self._held = _each_once(every.select(order))

    def note_ended(self, acked: U64, failed: FailedRoots) -> None:
        """Forget who held these roots; whoever held a failed one is to be told."""
        if len(self._held):
            is_failed = _is_in(failed.roots, self._held.roots)
            self._tell(self._held.select(is_failed))
            ended = is_failed | _is_in(acked, self._held.roots)
            self._held = self._held.select(~ended) if ended.any() else self._held

    @property
    def due(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._ended)

    def take(self) -> tuple[SystemPacket, ...]:
        """Return what the next batch has to tell, once: to each task only what it holds."""
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
    """Sorted pairs without those that stand there twice."""
    fresh = np.ones(len(pairs), np.bool_)
    fresh[1:] = (np.diff(pairs.roots) != 0) | (np.diff(pairs.holders) != 0)
    return pairs.select(fresh)


def _is_in(some: U64, roots: U64) -> NDArray[np.bool_]:
    """Which of the roots are among some, which ascend."""
    slots = np.searchsorted(some, roots)
    marks = np.zeros(len(roots), np.bool_)
    inside = slots < len(some)
    marks[inside] = some[slots[inside]] == roots[inside]
    return marks
