"""From a plan to one streaming query: a chain of stages with an exchange between any two."""

import hashlib
from typing import final

import cloudpickle
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sparkstorm.execution.report import Report
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.spark.datasource import SparkstormSource
from sparkstorm.spark.keys import partition_keys
from sparkstorm.spark.own_classes import own_classes
from sparkstorm.spark.rows import PACKETS_DDL
from sparkstorm.spark.worker.runtime import PlanPayload
from sparkstorm.spark.worker.stages import StageFunction, StageProcessor

__all__ = ["ReportsParam", "lower"]


@final
class ReportsParam(AccumulatorParam["list[Report]"]):
    """Adds up the reports of tasks."""

    def zero(self, value: list[Report]) -> list[Report]:
        """No reports."""
        return []

    def addInPlace(self, value1: list[Report], value2: list[Report]) -> list[Report]:
        """Put the second list behind the first."""
        value1 += value2
        return value1


def lower(
    plan: Plan,
    session: SparkSession,
    reports: "Accumulator[list[Report]]",
    *,
    link: str,
    token: str,
) -> DataFrame:
    """Build the streaming DataFrame of a plan.

    Args:
        plan: the plan.
        session: a session whose settings fit (see :mod:`driver.session`).
        reports: where tasks leave their reports.
        link: the path of the driver's link.
        token: its token.
    """
    data = cloudpickle.dumps((plan.for_workers(), own_classes()))
    payload = PlanPayload(hashlib.blake2b(data, digest_size=16).hexdigest(), data)
    session.dataSource.register(SparkstormSource)
    frame = (
        session.readStream.format(SparkstormSource.name())
        .option("link", link)
        .option("token", token)
        .load()
    )
    for stage in plan.stages:
        frame = _lower_stage(plan, stage, frame, payload, reports)
    return frame


def _lower_stage(
    plan: Plan,
    stage: Stage,
    frame: DataFrame,
    payload: PlanPayload,
    reports: "Accumulator[list[Report]]",
) -> DataFrame:
    if stage.kind is StageKind.STATE:
        keys = sf.array(*(sf.lit(key) for key in partition_keys(plan.partitions)))
        keyed = frame.withColumn("key", sf.element_at(keys, sf.col("dest") + 1))
        has_entries = any(
            plan.settings(component).state_backend == "rocksdb"
            for level in stage.levels
            for component in plan.levels[level].components
        )
        processor = StageProcessor(payload, stage, reports, has_entries=has_entries)
        return keyed.groupBy("key").transformWithState(processor, PACKETS_DDL, "append", "none")
    if stage.kind is not StageKind.READ:
        frame = frame.repartitionById(plan.partitions, sf.col("dest"))
    return frame.mapInArrow(StageFunction(payload, stage, reports), PACKETS_DDL)
