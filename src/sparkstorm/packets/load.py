"""Loads: the messages of one spout task that one partition reads in a batch."""

from dataclasses import dataclass
from typing import final

from sparkstorm.components.spout import Split

__all__ = ["Load", "SystemPacket"]


@final
@dataclass(frozen=True, slots=True)
class SystemPacket:
    """A packet that the engine itself sends to a task: roots that have ended, a tick."""

    target: int
    packet: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Messages of one spout task that a partition reads: a split, or the tuples themselves.

    Attributes:
        component: the spout.
        task: its task.
        stream: the stream that they are emitted to.
        lane: a number of its own among the loads of this task in this batch.
        count: how many messages.
        first: the root of the first one, the others follow; None if untracked.
        split: what to read, for a partitioned spout.
        packet: the tuples as a packet, for a hosted spout.
        direct: the tasks picked by ``emit_direct``, as bytes of int32.
    """

    component: str
    task: int
    stream: str
    lane: int
    count: int
    first: int | None
    split: Split | None = None
    packet: bytes | None = None
    direct: bytes | None = None
