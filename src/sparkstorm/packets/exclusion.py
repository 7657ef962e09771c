"""Leave tuples out that belong to messages which a batch is run again without.

The first stage does not read such messages. But Spark keeps what finished stages of a failed job
have written and uses it in the next one, so that later stages may still be handed their tuples.
"""

from collections.abc import Iterable

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.groves import Groves
from sparkstorm.acking.ids import U64
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.packet import Packet
from sparkstorm.verdicts import Failure, Reason

__all__ = ["leave_out"]

_TORN = Failure(
    reason=Reason.LOST,
    message="a tuple of its tree also belongs to a message that its batch was run without",
)


def leave_out(
    packets: Iterable[Packet], batch: BatchInfo, groves: Groves
) -> tuple[list[Packet], FailedRoots]:
    """Return DATA packets without the tuples of excluded roots; nothing in them is read.

    A value that cannot be read may be why its root is excluded. A tuple that also belongs to
    another root is left out all the same. Such a root fails at once: its tree can
    no longer complete, and while a bolt holds another tuple of it, nothing else would end it.
    That is a try of its message, else messages that fail only together would come for ever.

    The tuple of a grove that did not arrive goes, too: nobody could say what it belongs to.
    """
    kept: list[Packet] = []
    torn = [np.empty(0, np.uint64)]
    for packet in packets:
        left, others = _leave_out(packet, batch, groves)
        kept.append(left)
        torn.append(others)
    return kept, FailedRoots.alike(np.unique(np.concatenate(torn)), _TORN)


def _leave_out(packet: Packet, batch: BatchInfo, groves: Groves) -> tuple[Packet, U64]:
    """Return a packet without those tuples, itself if it has none, and their other roots."""
    lineage = packet.lineage()
    known = groves.knows(lineage.roots)
    excluded = known.copy()
    excluded[known] = groves.marked(lineage.roots[known], batch.is_excluded)
    gone = excluded | ~known
    if not gone.any():
        return packet, lineage.roots[:0]
    owners = lineage.owners()
    of_torn = np.isin(owners, owners[excluded]) & known
    others = groves.roots_of(lineage.roots[of_torn])
    kept = np.setdiff1d(np.arange(packet.count), owners[gone])
    return packet.keep(kept), others[~batch.is_excluded(others)]
