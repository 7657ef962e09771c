"""The functions that Spark calls in a worker, by kind of stage."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import final

import pyarrow as pa
from pyspark import Accumulator, TaskContext
from pyspark.sql import Row

from sparkstorm.packets.batch_info import Purpose
from sparkstorm.packets.load import Load, SystemPacket
from sparkstorm.planning.plan import Stage
from sparkstorm.spark.rows import packets_of, to_batches
from sparkstorm.spark.worker.runtime import (
    PlanPayload,
    attempt_name,
    batch_info,
    settle_gc,
    worker_of,
)
from sparkstorm.spark.worker.state_store import PartitionState, TaskStore
from sparkstorm.tasks.state_runs import StateRun, Told, fingerprint
from sparkstorm.tasks.worker import StageJob

__all__ = ["StageFunction", "StateStageFunction"]


@final
@dataclass(frozen=True)
class StageFunction:
    """A stage without state, for ``mapInArrow``: reading, running levels, or acking."""

    payload: PlanPayload
    stage: Stage
    told: "Accumulator[list[Told]]"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the stage on one partition."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        loads: list[Load | SystemPacket] = []
        packets: list[bytes] = []
        for batch in batches:
            if "loads" in batch.schema.names:
                partition = batch.column("dest")[0].as_py()
                for data in batch.column("loads").to_pylist():
                    loads += pickle.loads(data)  # noqa: S301 - from our own driver
            else:
                packets += packets_of([batch])
        job = StageJob(
            worker=worker_of(self.payload),
            stage=self.stage,
            partition=partition,
            batch=batch_info(),
        )
        sent, reports = job.run(packets, loads)
        yield from to_batches(sent)
        if job.batch.purpose is Purpose.BATCH:  # reports of probes do not count
            self.told.add([*reports])
        settle_gc()


@final
@dataclass(frozen=True)
class StateStageFunction:
    """A stage with state, for a :class:`StageProcessor`; ``number`` counts the plan's stages."""

    payload: PlanPayload
    stage: Stage
    number: int
    told: "Accumulator[list[Told]]"

    def __call__(self, state: PartitionState, rows: Iterator[Row]) -> Iterator[Row]:
        """Run the stage on one partition, whose key is selected."""
        received = [(row["dest"], bytes(row["packet"])) for row in rows]
        partition, packets = received[0][0], [data for _, data in received]
        job = StageJob(
            worker=worker_of(self.payload),
            stage=self.stage,
            partition=partition,
            batch=batch_info(),
            attempt=attempt_name(),
            store=partial(TaskStore, state),
        )
        sent, reports = job.run(packets)
        for home, data in sent:
            yield Row(dest=home, packet=data)
        if job.batch.purpose is Purpose.BATCH:  # reports of probes do not count
            run = StateRun((self.number, partition), fingerprint(packets, sent))
            self.told.add([*reports, run])
        settle_gc()
