"""Where Spark's own chatter goes: to a file, so that the terminal stays the topology's.

The JVM and the helper processes that it starts write to the standard streams that they inherit.
While Spark starts, ours lead to the file; ours alone are put back afterwards.
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
    """A file for what Spark writes; with ``verbose`` there is none, and it goes to stderr."""

    def __init__(self, name: str, *, verbose: bool = False) -> None:
        self.path: Path | None = None
        if not verbose:
            handle, path = tempfile.mkstemp(prefix=f"sparkstorm-{name}-", suffix=".log")
            os.close(handle)
            self.path = Path(path)

    @contextmanager
    def inherited(self) -> Iterator[None]:
        """Let processes that are started within write to the file."""
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
        """Remove the file: nobody needs it after a run that went well."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
