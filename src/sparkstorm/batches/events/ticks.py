"""Tick tuples: when they are due, and the packets that carry them."""

from typing import final

from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.load import SystemPacket
from sparkstorm.packets.packet import ENGINE, PacketWriter
from sparkstorm.planning.plan import TICKS, Plan
from sparkstorm.sources.packing import encode_rows

__all__ = ["Ticks"]


@final
class Ticks:
    """Says which tasks get a tick tuple in the next batch; not thread-safe.

    A tick rides in the next planned batch, so a tick may be late by a batch. If several ticks
    became due meanwhile, the task gets one tick, and reads the time from its context.

    Args:
        plan: the topology's plan.
        now: the time, of the same clock as the times of the methods.
    """

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan = plan
        self._rates = {
            spec.id: rate for spec in plan.topology.bolts if (rate := plan.tick_secs(spec.id))
        }
        self._next = {name: now + rate for name, rate in self._rates.items()}

    def due(self, now: float) -> bool:
        """Whether any bolt is to get a tick."""
        return any(now >= at for at in self._next.values())

    def take(self, now: float) -> tuple[SystemPacket, ...]:
        """Return the ticks that are due, once."""
        found: list[SystemPacket] = []
        for name, rate in self._rates.items():
            late = now - self._next[name]
            if late >= 0:
                self._next[name] = now + rate - late % rate
                found += self._signals(name, rate)
        return tuple(found)

    def _signals(self, component: str, rate: float) -> list[SystemPacket]:
        body = encode_rows(self._plan.stream(TICKS), [[rate]])
        writer, number = PacketWriter(ENGINE), self._plan.stream_number[TICKS]
        untracked = Lineage.untracked(1)
        return [
            SystemPacket(
                task, writer.data(stream=number, target=task, body=body, lineage=untracked)
            )
            for task in self._plan.tasks[component]
        ]

    def __repr__(self) -> str:
        return f"Ticks({', '.join(f'{name} {rate} s' for name, rate in self._rates.items())})"
