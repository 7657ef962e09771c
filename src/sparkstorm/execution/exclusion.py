"""Leave tuples out that belong to messages which a batch is run again without.

The first stage does not read such messages. But Spark keeps what finished stages of a failed job
have written and uses it in the next one, so that later stages may still be handed their tuples.
"""

import numpy as np

from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Body, Packet, PacketWriter

__all__ = ["leave_out"]


def leave_out(packet: Packet, batch: BatchInfo) -> Packet:
    """Return a DATA packet without the tuples of excluded roots: the packet itself if it has none.

    A tuple that also belongs to another root is left out all the same; that one is lost, too.
    """
    lineage, head = packet.lineage(), packet.head
    gone = batch.is_excluded(lineage.roots)
    if not gone.any():
        return packet
    kept = np.setdiff1d(np.arange(head.count), lineage.owners()[gone])
    columns = [column.take(kept) for column in packet.columns()]
    data = PacketWriter(head.source, head.sequence).data(
        stream=head.stream,
        target=head.target,
        body=Body.encode(columns, len(kept)),
        lineage=lineage.take(kept),
    )
    return Packet.decode(data)
