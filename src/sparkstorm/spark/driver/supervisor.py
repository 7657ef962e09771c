"""Keeps the query running: restarts the query when Spark ends it, up to a limit."""

import threading
import time
from collections.abc import Callable
from typing import final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sparkstorm.errors import BatchError, InternalError, SparkLostError, SparkstormError
from sparkstorm.spark.driver.failures.causes import cause_of
from sparkstorm.spark.driver.failures.overload import overload
from sparkstorm.spark.driver.failures.restarts import Restarts
from sparkstorm.spark.driver.failures.start_failures import StartFailure, start_failure
from sparkstorm.spark.driver.jvm import Jvm
from sparkstorm.spark.driver.query import Query
from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.texts.logs import logger_of

__all__ = ["Supervisor"]

_LOOK_SECS = 0.1

_logger = logger_of(__name__)


@final
class Supervisor:
    """Watches the query from a thread of its own.

    1. If the JVM is gone, or its context was stopped, the run is broken.
    2. If the query ended by a fault of the topology or of sparkstorm, the run is broken.
    3. If Spark ended the query, the supervisor restarts it on its checkpoint after a pause. The
       coordinator notices no restart: Spark asks for the uncommitted batch once more, then for the
       next.
    4. If Spark ends the query too often, the run is broken. While Spark cannot start Python
       workers, which is the machine's fault, the limit is a time without progress, not a count.

    Args:
        start_query: starts the query.
        server: answers the query's source.
        jvm: the JVM in which the query runs.
        restarts: decides on restarts.
        broken: called once, with the error, if the run cannot go on.
    """

    def __init__(
        self,
        start_query: Callable[[], Query],
        server: PlanServer,
        jvm: Jvm,
        restarts: Restarts,
        broken: Callable[[SparkstormError], None],
    ) -> None:
        self._start_query = start_query
        self._server = server
        self._jvm = jvm
        self._restarts = restarts
        self._broken = broken
        self._query: Query | None = None
        self._first_cause = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkstorm-query", daemon=True)

    def start(self) -> None:
        """Start the query, then the thread that watches it."""
        self._query = self._start_query()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, and stop the query if its JVM lives."""
        self._stopping.set()
        self._thread.join()
        if self._query is not None and not self._jvm.is_gone():
            self._query.stop()

    def _run(self) -> None:
        """The thread's loop."""
        while not self._stopping.wait(_LOOK_SECS):
            try:
                self._look()
            except SparkstormError as error:
                self._broken(error)
                return
            except Exception as error:  # noqa: BLE001 - the loop's outer edge: stop loudly
                self._broken(
                    InternalError(
                        f"the query could not be watched any more: {type(error).__name__}: {error}"
                    )
                )
                return

    def _look(self) -> None:
        # The JVM first: without it every other question fails, and only hides the cause.
        if self._jvm.is_gone():
            raise self._jvm.lost()
        if self._server.was_asked_for_more:
            self._restarts.note_healthy(time.monotonic())
        try:
            if self._query is not None and self._query.is_active:
                return
            self._check_fault()
            self._restart()
        except (PySparkException, Py4JError, OSError) as error:
            if not self._jvm.is_gone():  # else the next look raises
                self._wait_or_give_up(error)

    def _check_fault(self) -> None:
        """Raise an error of the topology or of sparkstorm: a restart does not mend it."""
        fault = self._server.fault or (self._query.fault if self._query is not None else None)
        if fault is not None and not isinstance(fault, BatchError):
            raise fault
        if self._jvm.context_is_stopped():
            raise SparkLostError("the Spark context was stopped while the topology was running")

    def _restart(self) -> None:
        if self._query is not None:
            # A fault raised in a batch reaches Spark only as a text: prefer the error itself.
            error = self._query.fault or self._query.exception()
            self._query = None
            self._wait_or_give_up(error or BatchError("it was stopped by somebody else"))
        if not self._stopping.is_set():
            self._server.was_asked_for_more = False
            self._query = self._start_query()

    def _wait_or_give_up(self, error: BaseException) -> None:
        failure = start_failure(error)
        if failure is not None:
            wait = self._wait_for_workers(error, failure)
        else:
            wait = self._wait_counted(error)
        self._stopping.wait(wait)

    def _wait_for_workers(self, error: BaseException, failure: StartFailure) -> float:
        """Return how long to wait until Spark may be able to start Python workers again."""
        if failure is StartFailure.STUCK:
            self._jvm.renew_workers()
        cause = failure.value
        if failure is StartFailure.LATE and (why := overload()) is not None:
            cause += f": {why}"
        wait = self._restarts.wait_patiently(time.monotonic())
        if wait is None:
            raise SparkLostError(
                f"Spark could start no Python workers for {self._restarts.patience_secs:g} s "
                f"(topology.query.restart.patience.secs): {cause}"
            ) from error
        _logger.warning("the query is started again in %.1f s: %s", wait, cause)
        return wait

    def _wait_counted(self, error: BaseException) -> float:
        """Return how long to wait before a restart; counts the restart."""
        wait = self._restarts.wait_after_failure(time.monotonic())
        cause = cause_of(error)
        if self._restarts.count == 1:
            self._first_cause = cause  # later failures often only follow from the first
        if wait is None:
            first = (
                "" if cause == self._first_cause else f"the first time with: {self._first_cause}; "
            )
            raise BatchError(
                f"the query failed again after {self._restarts.count - 1} restarts "
                f"(topology.query.max.restarts); {first}the last time with: {cause}"
            ) from error
        _logger.warning(
            "the query failed and is started again in %.1f s (restart %s): %s",
            wait,
            self._restarts.count,
            cause,
        )
        return wait
