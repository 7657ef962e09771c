"""Leave tuples out that belong to messages which a batch is run again without.

The first stage does not read such messages. But Spark keeps what finished stages of a failed job
have written and uses it in the next one, so that later stages may still be handed their tuples.
"""

from collections.abc import Iterable

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Note, Packet
from sparkstorm.verdicts import Failure, Reason

__all__ = ["leave_out"]

_TORN = Failure(
    reason=Reason.LOST,
    message="a tuple of its tree also belongs to a message that its batch was run without",
)


def leave_out(packets: Iterable[Packet], batch: BatchInfo) -> tuple[list[Packet], list[Note]]:
    """Return DATA packets without the tuples of excluded roots; nothing in them is read.

    A value that cannot be read may be why its root is excluded. A tuple that also belongs to
    another root is left out all the same. Such a root fails at once, by the notes: its tree can
    no longer complete, and while a bolt holds another tuple of it, nothing else would end it.
    That is a try of its message, else messages that fail only together would come for ever.
    """
    kept: list[Packet] = []
    torn: set[int] = set()
    for packet in packets:
        left, others = _leave_out(packet, batch)
        kept.append(left)
        torn.update(others.tolist())
    return kept, [Note(root, 1, _TORN) for root in sorted(torn)]


def _leave_out(packet: Packet, batch: BatchInfo) -> tuple[Packet, U64]:
    """Return a packet without those tuples, itself if it has none, and their other roots."""
    lineage = packet.lineage()
    gone = batch.is_excluded(lineage.roots)
    if not gone.any():
        return packet, lineage.roots[:0]
    owners = lineage.owners()
    dropped = np.unique(owners[gone])
    others = lineage.roots[np.isin(owners, dropped) & ~gone]
    return packet.keep(np.setdiff1d(np.arange(packet.count), dropped)), others
