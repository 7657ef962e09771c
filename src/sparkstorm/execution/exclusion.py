"""Leave tuples out that belong to messages which a batch is run again without.

The first stage does not read such messages. But Spark keeps what finished stages of a failed job
have written and uses it in the next one, so that later stages may still be handed their tuples.
"""

import numpy as np

from sparkstorm.acking.groves import Groves
from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Packet

__all__ = ["leave_out"]


def leave_out(packet: Packet, batch: BatchInfo, groves: Groves) -> Packet:
    """Return a DATA packet without the tuples of excluded roots: the packet itself if it has none.

    Nothing is read for it: a value that cannot be read may be why they are excluded.
    A tuple that also belongs to another root is left out all the same; that one is lost, too.
    So is the tuple of a grove that did not arrive: nobody could say what it belongs to.
    """
    lineage = packet.lineage()
    gone = ~groves.knows(lineage.roots)
    gone[~gone] = groves.marked(lineage.roots[~gone], batch.is_excluded)
    if not gone.any():
        return packet
    return packet.keep(np.setdiff1d(np.arange(packet.count), lineage.owners()[gone]))
