"""The JVM that Spark's driver runs in: whether it lives, and what to do when it does not."""

import logging
import signal
import sys
from contextlib import suppress
from subprocess import Popen, TimeoutExpired
from typing import Any, final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

__all__ = ["Jvm", "stop_session"]

_DYING_SECS = 5.0


@final
class Jvm:
    """The JVM of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext
        self._gateway: Any = self._context._gateway  # noqa: SLF001 - there is no public way
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
        java_context = self._context._jsc  # noqa: SLF001
        return java_context is None or bool(java_context.sc().isStopped())

    def how_it_ended(self) -> str:
        """Return what is known of its end.

        >>> _ending(-9), _ending(52), _ending(None)
        ('it was ended by SIGKILL', 'it exited with code 52', 'it cannot be reached any more')
        """
        if self._process is None:
            return _ending(None)
        with suppress(TimeoutExpired):  # its sockets close a moment before it can be waited for
            self._process.wait(_DYING_SECS)
        return _ending(self._process.returncode)

    def _quiet_its_end(self) -> None:
        """Keep PySpark from printing the traces of connections that end with the JVM.

        One error that says so is enough, and whoever had called the JVM gets an exception, too.
        """
        logging.getLogger().addFilter(_is_not_py4j)
        accumulators = self._context._accumulatorServer  # noqa: SLF001
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
    context: Any = session.sparkContext
    context._jsc = None  # noqa: SLF001 - nothing to stop there any more
    context.stop()
    for owner, name in (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkSession, "_instantiatedSession"),
        (SparkSession, "_activeSession"),
    ):
        setattr(owner, name, None)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _ending(code: int | None) -> str:
    if code is None:
        return "it cannot be reached any more"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"
