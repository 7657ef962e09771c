"""Spark's messages: a file, so that people see their topology's lines only.

The file goes with the run. It stays if the run fails for a reason that Spark may tell more about.
A killed driver's file goes with its scratch folder.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, final

from sparkstorm.checkpoint.scratch import make_folder
from sparkstorm.errors import BatchError, InternalError, SparkLostError, SparkstormError

__all__ = ["SparkMessages", "last_words"]

_FILE = "spark.log"
_NO_CAUSE = ("\t", " ", ":", "WARNING: Using incubator", "Using Spark's default log4j")
_THROWN = "Exception in thread "


@final
class SparkMessages:
    """A context in which Spark may run; the file goes at its end.

    Args:
        shown: let Spark write to stdout and stderr instead.
    """

    def __init__(self, *, shown: bool = False) -> None:
        self._folder: Path | None = None
        if not shown:
            self._folder = make_folder("spark")
            (self._folder / _FILE).touch()
        self._kept: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[IO[bytes] | None]:
        """Open the file for the JVM and the processes that it starts; None means stderr."""
        if self._folder is None:
            yield None
            return
        with (self._folder / _FILE).open("ab") as file:
            yield file

    def last_words(self) -> str:
        """Return what a JVM that did not start says is wrong; empty if nobody knows."""
        if self._folder is None:
            return ""
        return last_words((self._folder / _FILE).read_text(errors="replace"))

    def explain(self, error: BaseException) -> None:
        """Keep the file, and name it in a note of the error, if Spark may know the cause."""
        if self._folder is None or not _may_be_sparks(error):
            return
        if self._kept is None:
            handle, path = tempfile.mkstemp(prefix="sparkstorm-spark-", suffix=".log")
            os.close(handle)
            self._kept = (self._folder / _FILE).rename(path)
        error.add_note(f"Spark's own messages are in {self._kept}")

    def __enter__(self) -> "SparkMessages":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._kept is None:
            self.explain(error)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def last_words(text: str) -> str:
    r"""Return the lines that say why a JVM did not start.

    >>> last_words("Invalid maximum heap size: -Xmxlots\nError: Could not create the machine.\n")
    'Invalid maximum heap size: -Xmxlots; Error: Could not create the machine.'
    >>> last_words(":: loading\nException in thread \"main\" a.b.CError: no jar\n\tat d.e\n")
    'a.b.CError: no jar'
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_NO_CAUSE)]
    thrown = [line.partition('" ')[2] for line in lines if line.startswith(_THROWN)]
    return thrown[0] if thrown else "; ".join(lines[:2])


def _may_be_sparks(error: BaseException) -> bool:
    """Whether Spark's messages may help to explain an error."""
    if isinstance(error, SparkstormError):
        return isinstance(error, BatchError | InternalError | SparkLostError)
    return isinstance(error, Exception)
