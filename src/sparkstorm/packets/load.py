"""Loads: the messages of one spout task that one partition reads in a batch."""

from dataclasses import dataclass
from typing import final

from sparkstorm.components.spout import Split

__all__ = ["Load", "SystemPacket"]


@final
@dataclass(frozen=True, slots=True)
class SystemPacket:
    """A packet from the engine to a task: ended roots, or a tick."""

    target: int
    packet: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Messages of a spout task that a partition reads: a split, or the tuples themselves.

    Attributes:
        component: the spout.
        task: the spout's task.
        stream: the stream of the messages.
        lane: the load's number among the task's loads in this batch.
        count: the number of messages.
        first: the root of the first message, the others follow; None if untracked.
        split: the split to read, for a partitioned spout.
        packet: the tuples as a packet, for a hosted spout.
        direct: the target tasks of ``emit_direct``, as bytes of int32.
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
