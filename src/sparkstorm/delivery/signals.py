"""What the engine itself tells tasks: roots that have ended without the tuples they hold."""

from collections.abc import Iterable
from typing import final

import numpy as np

from sparkstorm.execution.packet import ENGINE, Kind, PacketWriter
from sparkstorm.execution.reading import Signal
from sparkstorm.planning.plan import Plan

__all__ = ["Signals"]


@final
class Signals:
    """Collects what the next batch has to tell single tasks; not thread-safe.

    A task that holds tuples must hear of roots that failed without it, before it sees the tuples
    of the next attempt: it drops what it holds of them, so that nothing counts twice and nothing
    is held for ever. Only roots that failed: a tree with a held tuple cannot complete.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._can_hold = frozenset(
            task for name in plan.stateful_components() for task in plan.tasks[name]
        )
        self._holders: set[int] = set()
        self._ended: list[int] = []

    def note_holders(self, tasks: Iterable[int]) -> None:
        """Remember tasks that said they hold tuples."""
        self._holders |= self._can_hold.intersection(tasks)

    def note_failed(self, roots: Iterable[int]) -> None:
        """Remember roots that failed, for those who may hold tuples of them."""
        if self._holders:
            self._ended += roots

    @property
    def due(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._ended)

    def take(self) -> tuple[Signal, ...]:
        """Return what the next batch has to tell, once."""
        if not self._ended:
            return ()
        roots = np.array(sorted(self._ended), np.uint64)
        self._ended = []
        writer = PacketWriter(ENGINE)
        return tuple(
            Signal(task, writer.roots(Kind.ENDED, task, roots)) for task in sorted(self._holders)
        )

    def __repr__(self) -> str:
        return f"Signals({len(self._ended)} roots ended, {len(self._holders)} tasks hold tuples)"
