"""Turn a plan into one streaming query: a chain of stages with an exchange between any two."""

import hashlib
import pickle
from typing import final

import cloudpickle
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.spark.keys import partition_keys
from sparkstorm.spark.own_classes import own_classes
from sparkstorm.spark.rows import PACKETS_DDL
from sparkstorm.spark.worker.processor import StageProcessor
from sparkstorm.spark.worker.runtime import PlanPayload
from sparkstorm.spark.worker.stages import StageFunction, StateStageFunction
from sparkstorm.tasks.state_runs import Told

__all__ = ["ToldParam", "lower"]


@final
class ToldParam(AccumulatorParam["list[Told]"]):
    """Collects the reports of tasks in the driver: Spark's accumulator of lists."""

    def zero(self, value: list[Told]) -> list[Told]:
        """Return an empty list."""
        return []

    def addInPlace(self, value1: list[Told], value2: list[Told]) -> list[Told]:
        """Put the second list behind the first."""
        value1 += value2
        return value1


def lower(plan: Plan, source: DataFrame, told: "Accumulator[list[Told]]") -> DataFrame:
    """Build the streaming DataFrame of a plan.

    Args:
        plan: the plan.
        source: the loads of the partitions (:data:`rows.LOADS_DDL`), in a session with the settings
            of :mod:`driver.session`.
        told: the accumulator in which tasks leave their reports for the driver.
    """
    data = cloudpickle.dumps((plan.for_workers(), own_classes()))
    payload = PlanPayload(hashlib.blake2b(data, digest_size=16).hexdigest(), data)
    frame = source
    for number in range(len(plan.stages)):
        frame = _lower_stage(plan, number, frame, payload, told)
    return frame


def _lower_stage(
    plan: Plan,
    number: int,
    frame: DataFrame,
    payload: PlanPayload,
    told: "Accumulator[list[Told]]",
) -> DataFrame:
    stage = plan.stages[number]
    if stage.kind is StageKind.STATE:
        # transformWithState takes no partition, only a key: so each partition has one key.
        keys = sf.array(*(sf.lit(key) for key in partition_keys(plan.partitions)))
        keyed = frame.withColumn("key", sf.element_at(keys, sf.col("dest") + 1))
        has_entries = any(
            plan.settings(component).state_backend == "rocksdb"
            for level in stage.levels
            for component in plan.levels[level].components
        )
        work = pickle.dumps(StateStageFunction(payload, stage, number, told))
        processor = StageProcessor(work, has_entries=has_entries)
        return keyed.groupBy("key").transformWithState(processor, PACKETS_DDL, "append", "none")
    if stage.kind is not StageKind.READ:  # the source's rows lie where they are read
        frame = frame.repartitionById(plan.partitions, sf.col("dest"))
    return frame.mapInArrow(StageFunction(payload, stage, told), PACKETS_DDL)
