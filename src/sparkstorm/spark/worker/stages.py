"""The functions that Spark calls in a worker, by kind of stage."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
from pyspark import Accumulator, TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

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
from sparkstorm.state.stores import ChunkStore
from sparkstorm.tasks.state_runs import StateRun, Told, fingerprint
from sparkstorm.tasks.worker import StageJob

__all__ = ["StageFunction", "StageProcessor"]


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
class StageProcessor(StatefulProcessor):
    """A stage with state, for ``transformWithState``: each partition has a single key."""

    def __init__(
        self,
        payload: PlanPayload,
        stage: Stage,
        number: int,
        told: "Accumulator[list[Told]]",
        *,
        has_entries: bool,
    ) -> None:
        self._payload = payload
        self._has_entries = has_entries
        self._stage = stage
        self._number = number
        self._told = told

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._state = PartitionState(handle, has_entries=self._has_entries)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:
        """Run the stage on one partition."""
        self._state.begin(key)
        received = [(row["dest"], bytes(row["packet"])) for row in rows]
        partition, packets = received[0][0], [data for _, data in received]
        job = StageJob(
            worker=worker_of(self._payload),
            stage=self._stage,
            partition=partition,
            batch=batch_info(),
            attempt=attempt_name(),
            store=self._store,
        )
        sent, reports = job.run(packets)
        for home, data in sent:
            yield Row(dest=home, packet=data)
        if job.batch.purpose is Purpose.BATCH:  # reports of probes do not count
            run = StateRun((self._number, partition), fingerprint(packets, sent))
            self._told.add([*reports, run])
        settle_gc()

    def close(self) -> None:
        """Do nothing: bolts live on in the process."""

    def _store(self, namespace: str) -> ChunkStore:
        return TaskStore(self._state, namespace)
