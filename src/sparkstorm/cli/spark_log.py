"""Spark's log: a file for Spark's own messages, so the terminal shows only the topology's."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, final

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
    def opened(self) -> Iterator[IO[bytes] | None]:
        """Open the file for the JVM and the processes that it starts; None means stderr."""
        if self.path is None:
            yield None
            return
        with self.path.open("ab") as file:
            yield file

    def discard(self) -> None:
        """Remove the file: after a good run nobody needs it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
