"""The Spark jobs of one micro-batch: the batch itself, and probes on a copy of its plan.

Spark keeps what the finished stages of a failed job have written, and uses it in the next action
on the same frame. For the batch itself that is welcome: what is left out only grows, and stages
leave out what they are still handed. A probe must not leave such remains, nor must the state that
it writes count. So it runs on a copy of the physical plan: new exchanges, and new state whose ids
Spark never hears of.
"""

import threading
import time
from typing import Any, final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sparkstorm.execution.batch import BatchInfo, Purpose
from sparkstorm.spark.driver.causes import cause_of
from sparkstorm.spark.rows import BATCH_PROPERTY

__all__ = ["BatchJobs", "JobError"]


class JobError(Exception):
    """A job failed; ``hung``: it was cancelled because it took longer than it may."""

    def __init__(self, message: str, *, hung: bool) -> None:
        super().__init__(message)
        self.hung = hung


@final
class BatchJobs:
    """Runs actions of one micro-batch; to be used on the thread that Spark calls us on."""

    def __init__(self, frame: DataFrame, query: StreamingQuery) -> None:
        self._frame = frame
        self._query = query
        self._context = frame.sparkSession.sparkContext

    def run(self, info: BatchInfo, limit_secs: float) -> list[bytes]:
        """Run an action; return the rows of the last stage, none if it is a probe.

        Raises:
            JobError: the job failed, or took longer than the limit. Any other error is none of
                the batch's: Spark itself is gone.
        """
        self._context.setLocalProperty(BATCH_PROPERTY, info.to_json())
        limit = _TimeLimit(limit_secs, self._cancel)
        try:
            with limit:
                if info.purpose is Purpose.BATCH:
                    column: list[Any] = self._frame.toArrow().column("packet").to_pylist()
                    return column
                self._probe()
                return []
        except (Py4JJavaError, CapturedException) as error:
            if self._context._jsc.sc().isStopped():  # noqa: SLF001 - there is no public way
                raise
            if limit.expired:
                raise JobError(f"it took longer than {limit_secs:.1f} s", hung=True) from error
            raise JobError(cause_of(error), hung=False) from error

    def _probe(self) -> None:
        query: Any = self._query._jsq  # noqa: SLF001 - the running plan is not public
        query.streamingQuery().lastExecution().executedPlan().clone().execute().count()

    def _cancel(self) -> None:
        self._context.cancelJobGroup(str(self._query.runId))


@final
class _TimeLimit:
    """Calls ``cancel`` again and again once the time is over: a job may not have begun yet."""

    _AGAIN_SECS = 1.0

    def __init__(self, secs: float, cancel: Any) -> None:
        self.expired = False
        self._deadline = time.monotonic() + secs
        self._cancel = cancel
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()  # a late cancel would end the next job

    def _watch(self) -> None:
        wait = self._deadline - time.monotonic()
        while not self._over.wait(max(0.0, wait)):
            self.expired = True
            self._cancel()
            wait = self._AGAIN_SECS
