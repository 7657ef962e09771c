"""The LinesSpout: lines of text files, read by the executors."""

import glob
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import pyarrow as pa

from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import EXPIRED, Expired, PartitionedSpout, Split
from sparkstorm.config import Config
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.streams import Outputs

__all__ = ["LinesSpout"]

_BLOCK = 4 * 1024 * 1024


@final
class LinesSpout(PartitionedSpout):
    """One message per line of one or several files; ends when all lines are read.

    Args:
        paths: files, or glob patterns (``"logs/*.txt"``), readable under the same path by the
            driver and every executor. Every file belongs to one task, the same task in every run,
            whichever other files there are.
        field: the name of the only field, a string without the line's end.

    The driver only looks for line ends; the executors read. Bytes outside UTF-8 become U+FFFD. A
    restart goes on after the last acks, even if files have come or gone meanwhile.

    The spout looks for files once, at the start. A program may append whole lines to a file while
    the spout reads it. Text after the last line end is a message too, since many files end without
    one; text appended to such a line later is a further message. You may delete a file once all its
    lines are acked. A file deleted earlier ends the run.
    """

    replayable = True

    def __init__(self, *paths: str | os.PathLike[str], field: str = "sentence") -> None:
        self.outputs: Outputs = f"{field} string"
        self._field = field
        self._patterns = [os.fspath(path) for path in paths]
        self._cursors: dict[str, tuple[int, int]] = {}
        self._sizes: dict[str, int] = {}

    def open(self, config: Config, context: TaskContext) -> None:
        """Find the files of this task."""
        tasks = len(context.component_tasks(context.component))
        # Not by the order of files: a cursor must find its task although other files come and go.
        self._sizes = {
            path: size
            for path, size in self._find().items()
            if _place_of(path, tasks) == context.task_index
        }

    def plan(self, limit: int) -> list[Split]:
        """Return the next lines of the first file with lines left."""
        for path in self._sizes:
            if self._has_more(path):
                offset, line = self._cursor(path)
                with _reading(path):
                    end, count = _after_lines(path, offset, limit)
                self._cursors[path] = (end, line + count)
                data = {"path": path, "offset": offset, "end": end, "line": line}
                return [Split(count=count, data=data, size=end - offset)]
        return []

    def read(self, split: Split) -> Iterable[Sequence[Any] | Expired | None]:
        """Read the lines of a split as one record batch.

        Lines missing since the plan, because the file was cut short, have expired.
        """
        with open(split.data["path"], "rb") as file:
            file.seek(split.data["offset"])
            data = file.read(split.data["end"] - split.data["offset"])
        lines = data.decode("utf-8", "replace").split("\n")
        if data.endswith(b"\n"):
            # The text after the last line end is empty: no line.
            lines.pop()
        if b"\r\n" in data:
            lines = [line.removesuffix("\r") for line in lines]
        if len(data) < split.data["end"] - split.data["offset"]:
            # The last line may be cut in its middle, so it has expired, too.
            whole = data.count(b"\n")
            yield from ((line,) for line in lines[:whole])
            yield from itertools.repeat(EXPIRED, split.to_read - whole)
            return
        yield pa.record_batch([pa.array(lines, pa.string())], [self._field])

    def msg_id(self, split: Split, position: int) -> tuple[str, int]:
        """Return the file and the number of the line, from 1."""
        number = split.only[position] if split.only is not None else position
        return (split.data["path"], split.data["line"] + number + 1)

    def snapshot(self) -> Any:
        """Return how far each file is planned: (byte offset, line number)."""
        return {path: list(cursor) for path, cursor in self._cursors.items()}

    def restore(self, snapshot: Any) -> None:
        """Take up the cursors of an earlier run."""
        self._cursors = {path: (offset, line) for path, (offset, line) in snapshot.items()}

    def exhausted(self) -> bool:
        """Return whether every file is planned to its end."""
        return not any(self._has_more(path) for path in self._sizes)

    def _cursor(self, path: str) -> tuple[int, int]:
        return self._cursors.get(path, (0, 0))

    def _has_more(self, path: str) -> bool:
        """Return whether a file has unplanned bytes; a file planned to its end may be gone."""
        offset, line = self._cursor(path)
        with _reading(path):
            try:
                self._sizes[path] = os.path.getsize(path)
            except FileNotFoundError as error:
                if offset < self._sizes[path]:
                    raise SpoutConnectionError(
                        f"{path!r} is gone, and was read only up to line {line:,}. Put it back, "
                        f"and start the topology again"
                    ) from error
        return offset < self._sizes[path]

    def _find(self) -> dict[str, int]:
        """Return the files of all tasks, with their sizes."""
        found: list[str] = []
        for pattern in self._patterns:
            paths = sorted(glob.glob(pattern, recursive=True)) or [pattern]
            found += [os.path.abspath(path) for path in paths if not os.path.isdir(path)]
        if not found:
            raise SpoutConnectionError(self._nothing_found())
        return {path: _size_if_readable(path) for path in found}

    def _nothing_found(self) -> str:
        folder = next((path for path in self._patterns if os.path.isdir(path)), None)
        if folder is not None:
            return f"{folder!r} is a folder: give its files, {os.path.join(folder, '*')!r} say"
        return f"no files to read: {', '.join(self._patterns) or 'none'}"


def _place_of(path: str, tasks: int) -> int:
    """Return the task of a file: the same in every run."""
    return zlib.crc32(os.fsencode(path)) % tasks


def _size_if_readable(path: str) -> int:
    with _reading(path), open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Translate errors of a file into the world's fault."""
    try:
        yield
    except OSError as error:
        raise SpoutConnectionError(
            f"cannot read {path!r}: {error.strerror or error}. Give a file that exists and that "
            f"this user may read"
        ) from error


def _after_lines(path: str, offset: int, limit: int) -> tuple[int, int]:
    """Return the offset after at most ``limit`` lines, and the number of lines."""
    count, last = 0, b"\n"
    with open(path, "rb") as file:
        file.seek(offset)
        while block := file.read(_BLOCK):
            ends = block.count(b"\n")
            if count + ends >= limit:
                return offset + _nth_end(block, limit - count), limit
            count, offset, last = count + ends, offset + len(block), block[-1:]
    return offset, count + (last != b"\n")


def _nth_end(block: bytes, number: int) -> int:
    """Return the position after the n-th line end of a block."""
    position = 0
    for _ in range(number):
        position = block.index(b"\n", position) + 1
    return position
