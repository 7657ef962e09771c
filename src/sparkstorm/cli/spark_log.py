"""Spark's log: a file for Spark's own messages, so the terminal shows only the topology's.

The JVM and its helper processes write to the standard streams they inherit. While Spark starts, our
streams lead to the file; afterwards only ours are restored.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

__all__ = ["SparkLog"]


@final
class SparkLog:
    """A file for Spark's messages; with ``verbose`` there is no file, and they go to stderr."""

    def __init__(self, name: str, *, verbose: bool = False) -> None:
        self.path: Path | None = None
        if not verbose:
            handle, path = tempfile.mkstemp(prefix=f"sparkstorm-{name}-", suffix=".log")
            os.close(handle)
            self.path = Path(path)

    @contextmanager
    def inherited(self) -> Iterator[None]:
        """Lead the output of processes started within the context to the file."""
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        target = os.dup(2) if self.path is None else os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.dup2(target, 1)
            os.dup2(target, 2)
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, stream in enumerate(saved, start=1):
                os.dup2(stream, number)
                os.close(stream)
            os.close(target)

    def discard(self) -> None:
        """Remove the file: after a good run nobody needs it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
