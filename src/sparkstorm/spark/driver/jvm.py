"""The JVM of Spark's driver: whether it lives, and the cleaning up after its end."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any, final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sparkstorm.errors import SparkLostError, SparkstormError
from sparkstorm.spark.internals import (
    accumulator_server,
    forget_context,
    gateway_of,
    is_stopped,
    worker_environment,
)

__all__ = ["Jvm", "stop_session"]

_END_SECS = 5.0
_GENERATION = "SPARKSTORM_WORKERS"
_CALLS_FROM_JAVA = ("py4j.clientserver", "py4j.java_gateway")
"""The loggers that print what Python raises when Java calls."""


@final
class Jvm:
    """The JVM of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext
        self._gateway = gateway_of(self._context)
        self._process: Popen[bytes] | None = getattr(self._gateway, "proc", None)
        self._quiet_its_end()

    def is_gone(self) -> bool:
        """Whether the JVM has ended, or cannot be reached any more."""
        if self._process is not None and self._process.poll() is not None:
            return True
        try:  # any call will do: of a JVM that others started only the connection tells
            self._gateway.jvm.java.lang.System.nanoTime()
        except (Py4JError, OSError):
            return True
        return False

    def context_is_stopped(self) -> bool:
        """Whether somebody stopped the Spark context, so no query can run."""
        return is_stopped(self._context)

    def renew_workers(self) -> None:
        """Make Spark use new factories of Python workers for the next query.

        Each executor, and the driver, keep one factory for each environment of the workers. A
        factory can break for good (:class:`StartFailure`), so a changed variable leads around every
        broken one.
        """
        environment = worker_environment(self._context)
        environment[_GENERATION] = str(int(environment.get(_GENERATION, "1")) + 1)

    def lost(self) -> SparkLostError:
        """Return the error that says how the JVM ended.

        >>> _ending(-9), _ending(52), _ending(None)
        ('it was ended by SIGKILL', 'it exited with code 52', 'it cannot be reached any more')
        """
        code = None
        if self._process is not None:
            with suppress(TimeoutExpired):  # connections end a moment before the process
                code = self._process.wait(_END_SECS)
        return SparkLostError(f"the JVM that Spark runs in has ended: {_ending(code)}")

    @contextmanager
    def told_if_gone(self) -> Iterator[None]:
        """Turn errors within the block into :class:`SparkLostError` if the JVM is gone.

        Raises:
            SparkLostError: the JVM is gone.
        """
        try:
            yield
        except (Py4JError, OSError) as error:
            if self.is_gone():
                raise self.lost() from error
            raise

    def _quiet_its_end(self) -> None:
        """Keep PySpark from printing a trace for each connection that ends with the JVM.

        One error is enough, and each caller of the JVM gets an exception besides. The run raises
        sparkstorm's own errors, so py4j need not print those that pass through Java.
        """
        logging.getLogger().addFilter(_is_not_py4j)
        for name in _CALLS_FROM_JAVA:
            logging.getLogger(name).addFilter(_is_not_ours)
        accumulators = accumulator_server(self._context)
        if accumulators is None:
            return
        told = type(accumulators).handle_error

        def handle_error(request: object, address: object) -> None:
            if not isinstance(sys.exception(), EOFError | ConnectionError):
                told(accumulators, request, address)

        accumulators.handle_error = handle_error


def stop_session(session: SparkSession) -> None:
    """Stop a session. If the JVM is gone, make PySpark forget the session, so another can start."""
    if not Jvm(session).is_gone():
        session.stop()
        return
    forget_context(session.sparkContext)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _is_not_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], SparkstormError)


def _ending(code: int | None) -> str:
    if code is None:
        return "it cannot be reached any more"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"
