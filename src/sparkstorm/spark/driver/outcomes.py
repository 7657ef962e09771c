"""foreachBatch: run a batch's job, again with less if it fails, and hand its outcome over."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, final

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from sparkstorm.delivery.coordinator import Coordinator
from sparkstorm.delivery.halving import Halving
from sparkstorm.errors import BatchError, SparkstormError
from sparkstorm.execution.report import Report
from sparkstorm.spark.driver.causes import cause_of
from sparkstorm.spark.rows import BATCH_PROPERTY

__all__ = ["BatchRunner"]

_logger = logging.getLogger(__name__)


@final
class BatchRunner:
    """Called by Spark for each micro-batch, on a thread of the query; one at a time.

    1. tell the tasks of the batch (a local property), run the one action, with a time limit;
    2. if it fails, run it again, and then again with half of the messages left out;
    3. hand the outcome to the coordinator. Spark commits when this returns.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        reports: "Accumulator[list[Report]]",
        timeout_secs: float,
        jvm_is_gone: Callable[[], bool],
    ) -> None:
        self.run_id = ""
        self.error: SparkstormError | None = None
        self.stopping = False
        self._coordinator = coordinator
        self._reports = reports
        self._timeout_secs = timeout_secs
        self._jvm_is_gone = jvm_is_gone

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Run a batch."""
        try:
            self._run(frame, number)
        except SparkstormError as error:
            self.error = error
            raise

    def _run(self, frame: DataFrame, number: int) -> None:
        halving: Halving | None = None
        self._coordinator.leave_out(number, ())  # what an earlier query may have left out
        while True:
            started = time.monotonic()
            try:
                rows = self._act(frame, number)
                break
            except SparkstormError:
                raise
            except Exception as error:
                if self.stopping or self._jvm_is_gone():  # the job failed with the query
                    raise
                halving = halving or Halving(self._coordinator.info(number).ranges)
                self._leave_out(number, halving, error)
        secs = time.monotonic() - started
        self._coordinator.finish(number, rows, secs, self._take_reports())

    def _act(self, frame: DataFrame, number: int) -> list[bytes]:
        context = frame.sparkSession.sparkContext
        context.setLocalProperty(BATCH_PROPERTY, self._coordinator.info(number).to_json())
        hung = threading.Timer(self._timeout_secs, context.cancelJobGroup, [self.run_id])
        hung.daemon = True
        hung.start()
        try:
            column: list[Any] = frame.toArrow().column("packet").to_pylist()
            return column
        finally:
            hung.cancel()

    def _leave_out(self, number: int, halving: Halving, error: Exception) -> None:
        if not halving.tried:
            raise BatchError(
                f"batch {number} fails even without any message: {cause_of(error)}"
            ) from error
        excluded = halving.failed()
        self._take_reports()
        self._coordinator.leave_out(number, excluded, halving.poisons)
        _logger.warning(
            "the job of batch %s failed and is run again with %s messages: %s",
            number,
            halving.tried,
            cause_of(error),
        )

    def _take_reports(self) -> list[Report]:
        taken = self._reports.value
        self._reports.value = []
        return taken
