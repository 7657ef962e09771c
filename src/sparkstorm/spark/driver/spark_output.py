"""Spark's output: the messages of the JVM and its processes, without those that nobody needs."""

import os
import sys
import threading
from contextlib import suppress
from typing import IO

__all__ = ["filtered_stderr"]

_CHATTER = (
    "Streaming TransformWithStateInPandas Python worker",
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    'Setting default log level to "',
    "To adjust logging level use sc.setLogLevel",
    "WARN NativeCodeLoader",
    "WARN Utils: Your hostname",
    "WARN Utils: Set SPARK_LOCAL_IP",
)
"""Lines with these are said at every start, and ask for nothing."""


def filtered_stderr() -> IO[bytes]:
    """Return a file for a child's output: its lines go to our stderr, but for the chatter."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=_forward, args=[reading], name="spark-output", daemon=True)
    thread.start()
    return os.fdopen(writing, "wb", buffering=0)


def _forward(descriptor: int) -> None:
    was_chatter = False
    with os.fdopen(descriptor, "r", errors="backslashreplace") as lines:
        for line in lines:
            # A chatterer ends its lines twice.
            was_chatter = any(text in line for text in _CHATTER) or (was_chatter and line == "\n")
            if was_chatter:
                continue
            with suppress(OSError, ValueError):  # a stderr that is closed must not stop Spark
                sys.stderr.write(line)
                sys.stderr.flush()
