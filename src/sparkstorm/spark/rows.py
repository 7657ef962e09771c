"""The rows that Spark moves: a packet, and the number of its partition."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from sparkstorm.tasks.dispatch import Delivery

__all__ = ["BATCH_PROPERTY", "LOADS_DDL", "PACKETS_DDL", "packets_of", "to_batches", "unchanged"]

LOADS_DDL = "dest int, loads binary"
"""Columns of the source: a partition, and its loads, pickled by the driver."""

PACKETS_DDL = "dest int, packet binary"
"""Columns between stages."""

BATCH_PROPERTY = "sparkstorm.batch"
"""Name of Spark's local property that carries the running :class:`BatchInfo` to the tasks."""

_SCHEMA = pa.schema([pa.field("dest", pa.int32()), pa.field("packet", pa.binary())])
_BATCH_BYTES = 64 * 1024 * 1024


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand on what comes, for jobs that only have workers started."""
    return batches


def packets_of(batches: Iterable[pa.RecordBatch]) -> list[bytes]:
    """Return the packets of Arrow batches."""
    return [data for batch in batches for data in batch.column("packet").to_pylist()]


def to_batches(deliveries: Sequence[Delivery]) -> Iterator[pa.RecordBatch]:
    """Put packets into Arrow batches, each small enough for the JVM to take easily."""
    start, size = 0, 0
    for index, (_, data) in enumerate(deliveries):
        if size and size + len(data) > _BATCH_BYTES:
            yield _batch(deliveries[start:index])
            start, size = index, 0
        size += len(data)
    if deliveries:
        yield _batch(deliveries[start:])


def _batch(deliveries: Sequence[Delivery]) -> pa.RecordBatch:
    homes = pa.array([home for home, _ in deliveries], pa.int32())
    packets = pa.array([data for _, data in deliveries], pa.binary())
    return pa.RecordBatch.from_arrays([homes, packets], schema=_SCHEMA)
