"""One life of the streaming query: from its start to the moment when Spark ends it."""

from typing import Any, final

from pyspark.sql import SparkSession

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.errors import SparkstormError
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.outcomes import BatchRunner
from sparkstorm.spark.driver.session import query_session
from sparkstorm.spark.link import LinkServer
from sparkstorm.spark.lowering import ToldParam, lower

__all__ = ["Query"]


@final
class Query:
    """Starts the query of a plan on a checkpoint when it is made.

    Args:
        plan: the topology's plan.
        session: the session that was given or made.
        checkpoint: the checkpoint folder.
        coordinator: gets the outcomes of batches.
        link: what the reader process asks.
    """

    def __init__(
        self,
        plan: Plan,
        session: SparkSession,
        checkpoint: str,
        coordinator: Coordinator,
        link: LinkServer,
    ) -> None:
        own = query_session(session, plan.partitions, checkpoint)
        told: Any = own.sparkContext.accumulator([], ToldParam())
        frame = lower(plan, own, told, link=link.path, token=link.token)
        self._batches = BatchRunner(coordinator, plan, told)
        self._query = (
            frame.writeStream.queryName(plan.name)
            .foreachBatch(self._batches)
            .option("checkpointLocation", f"{checkpoint.rstrip('/')}/spark")
            .start()
        )
        self._batches.attach(self._query)

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return bool(self._query.isActive)

    @property
    def fault(self) -> SparkstormError | None:
        """What its batches raised on purpose, if they did."""
        return self._batches.error

    def exception(self) -> BaseException | None:
        """What Spark says it ended with."""
        return self._query.exception()

    def stop(self) -> None:
        """Stop it, and the job that runs."""
        self._batches.stop()
        self._query.stop()
