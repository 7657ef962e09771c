"""The JVM that Spark's driver runs in: whether it lives, and what to do when it does not."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any, final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sparkstorm.errors import SparkLostError
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


@final
class Jvm:
    """The JVM of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext
        self._gateway = gateway_of(self._context)
        self._process: Popen[bytes] | None = getattr(self._gateway, "proc", None)
        self._quiet_its_end()

    def is_gone(self) -> bool:
        """Whether it has ended, or cannot be reached any more."""
        if self._process is not None and self._process.poll() is not None:
            return True
        try:
            self._gateway.jvm.java.lang.System.nanoTime()
        except (Py4JError, OSError):
            return True
        return False

    def context_is_stopped(self) -> bool:
        """Whether somebody stopped the Spark context, so that no query can run on it."""
        return is_stopped(self._context)

    def renew_workers(self) -> None:
        """Let Spark start the Python workers of the next query in another way than until now.

        Each executor, and the driver, keep one factory of workers for each environment that workers
        are started with. So another variable makes another factory, wherever the broken one is.
        """
        environment = worker_environment(self._context)
        environment[_GENERATION] = str(int(environment.get(_GENERATION, "1")) + 1)

    def lost(self) -> SparkLostError:
        """Return the error that says how it ended.

        >>> _ending(-9), _ending(52), _ending(None)
        ('it was ended by SIGKILL', 'it exited with code 52', 'it cannot be reached any more')
        """
        code = None
        if self._process is not None:
            with suppress(TimeoutExpired):  # its connections end a moment before it does
                code = self._process.wait(_END_SECS)
        return SparkLostError(f"the JVM that Spark runs in has ended: {_ending(code)}")

    @contextmanager
    def told_if_gone(self) -> Iterator[None]:
        """Say so, if an error that comes up within is only that it is gone.

        Raises:
            SparkLostError: it is.
        """
        try:
            yield
        except (Py4JError, OSError) as error:
            if self.is_gone():
                raise self.lost() from error
            raise

    def _quiet_its_end(self) -> None:
        """Keep PySpark from printing the traces of connections that end with the JVM.

        One error that says so is enough, and whoever had called the JVM gets an exception, too.
        """
        logging.getLogger().addFilter(_is_not_py4j)
        accumulators = accumulator_server(self._context)
        if accumulators is None:
            return
        told = type(accumulators).handle_error

        def handle_error(request: object, address: object) -> None:
            if not isinstance(sys.exception(), EOFError | ConnectionError):
                told(accumulators, request, address)

        accumulators.handle_error = handle_error


def stop_session(session: SparkSession) -> None:
    """Stop a session; if its JVM is gone, only forget it, so that another one can be started."""
    if not Jvm(session).is_gone():
        session.stop()
        return
    forget_context(session.sparkContext)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _ending(code: int | None) -> str:
    if code is None:
        return "it cannot be reached any more"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"
