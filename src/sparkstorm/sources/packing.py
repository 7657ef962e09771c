"""Packing: rows of values as loads, for hosted spouts and for replayed letters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.columns import make_column, rows_of
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body, Packet, PacketWriter
from sparkstorm.planning.plan import StreamKey
from sparkstorm.streams import Stream

__all__ = ["encode_rows", "packed_load", "unpack_rows"]


def encode_rows(stream: Stream, rows: Sequence[Sequence[Any]]) -> Body:
    """Encode rows of a stream.

    Raises:
        CoderError: some rows do not fit the declared fields, or cannot be sent.
    """
    columns = {
        field.name: make_column(field, [row[index] for row in rows])
        for index, field in enumerate(stream.fields)
    }
    return Body.of_fields(columns, len(rows))


def packed_load(
    key: StreamKey, task: int, body: Body, *, first: int | None, lane: int, direct: Sequence[int]
) -> Load:
    """Return the load of encoded rows.

    Args:
        key: the stream.
        task: the spout's task.
        body: the rows.
        first: the first root; None if the rows are untracked.
        lane: the number of the load among the task's loads in the batch.
        direct: for each row the task to go to; empty if the stream is not direct.
    """
    packet = PacketWriter(task).data(
        stream=0, target=0, body=body, lineage=Lineage.untracked(body.count)
    )
    return Load(
        component=key.component,
        task=task,
        stream=key.stream,
        lane=lane,
        count=body.count,
        first=first,
        packet=packet,
        direct=np.array(direct, np.int32).tobytes() if direct else None,
    )


def unpack_rows(packet: bytes) -> list[tuple[Any, ...]]:
    """Return the rows of a load."""
    decoded = Packet.decode(packet)
    return list(rows_of(decoded.columns(), decoded.count))
