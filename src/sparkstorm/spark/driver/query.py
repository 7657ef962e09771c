"""A life of the streaming query: from the start until Spark ends the query."""

from typing import Any, final

from pyspark.sql import SparkSession

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.errors import SparkstormError
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.outcomes import BatchRunner
from sparkstorm.spark.driver.session import query_session
from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.spark.driver.source.stream import read_batches
from sparkstorm.spark.lowering import ToldParam, lower

__all__ = ["Query"]


@final
class Query:
    """A streaming query, started when the object is made.

    Args:
        plan: the topology's plan.
        session: the session that was given or made.
        checkpoint: the checkpoint folder.
        coordinator: gets the outcomes of batches.
        server: answers the questions of the query's source.
    """

    def __init__(
        self,
        plan: Plan,
        session: SparkSession,
        checkpoint: str,
        coordinator: Coordinator,
        server: PlanServer,
    ) -> None:
        own = query_session(session, plan.partitions, checkpoint)
        told: Any = own.sparkContext.accumulator([], ToldParam())
        frame = lower(plan, read_batches(own, server), told)
        self._batches = BatchRunner(coordinator, plan, told)
        self._query = (
            frame.writeStream.queryName(plan.name)
            .foreachBatch(self._batches)
            .option("checkpointLocation", f"{checkpoint.rstrip('/')}/spark")
            .start()
        )
        # Spark may call the first batch before start() returns: it waits for its query.
        self._batches.attach(self._query)

    @property
    def is_active(self) -> bool:
        """Whether Spark runs the query."""
        return bool(self._query.isActive)

    @property
    def fault(self) -> SparkstormError | None:
        """The error raised by sparkstorm within a batch, if any."""
        return self._batches.error

    def exception(self) -> BaseException | None:
        """Return Spark's reason for the end of the query, if any."""
        return self._query.exception()

    def stop(self) -> None:
        """Stop the query, and the running job."""
        self._batches.stop()
        self._query.stop()
