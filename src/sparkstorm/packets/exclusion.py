"""Leave out the tuples of excluded messages, without which a batch is run again.

The first stage does not read such messages. But Spark keeps the output of finished stages of a
failed job and uses the output in the next job, so later stages may still receive such tuples.
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
    """Return DATA packets without the tuples of excluded roots, and the torn roots; read no value.

    An unreadable value may be the very cause of an exclusion, so nothing is decoded. A tuple that
    also belongs to another root is left out too, and tears the other root's tree: the tree can
    never complete, and might stay open for ever by another held tuple. So the torn root fails at
    once. The failure counts as an attempt of its message; otherwise messages that fail only
    together would come for ever.

    The tuple of a grove that did not arrive is left out as well: nobody can tell its roots.
    """
    kept: list[Packet] = []
    torn = [np.empty(0, np.uint64)]
    for packet in packets:
        left, others = _leave_out(packet, batch, groves)
        kept.append(left)
        torn.append(others)
    return kept, FailedRoots.alike(np.unique(np.concatenate(torn)), _TORN)


def _leave_out(packet: Packet, batch: BatchInfo, groves: Groves) -> tuple[Packet, U64]:
    """Return a packet without excluded tuples (itself if there are none), and their other roots."""
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
