"""The LinesSpout: lines of text files, read by the executors."""

import glob
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import pyarrow as pa

from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import (
    EXPIRED,
    Expired,
    Messages,
    PartitionedSpout,
    ReadItem,
    Split,
    Unreadable,
)
from sparkstorm.config import Config
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.spouts.text_files import (
    BLOCK,
    Form,
    Unpacked,
    ends_of,
    form_of,
    has_open_line,
    lines_of,
    plain_name,
    read_bytes,
    unit_of,
)
from sparkstorm.streams import Outputs

__all__ = ["LinesSpout"]


@final
class LinesSpout(PartitionedSpout):
    """One message per line of one or several files; ends when all lines are read.

    Args:
        paths: files, or glob patterns (``"logs/*.txt"``), readable under the same path by the
            driver and every executor. Every file belongs to one task, the same task in every run,
            whichever other files there are.
        field: the name of the only field, a string without the line's end.
        encoding: the encoding of the texts, by Python's name: ``"cp1252"``, ``"utf-16"``. A byte
            order mark at a file's beginning tells which Unicode encoding the file has. The mark is
            no part of the first line.

    The driver only looks for line ends; the executors read. A line that cannot be decoded becomes a
    dead letter, with the line's bytes as ``source["bytes"]``. A restart goes on after the last
    acks, even if files have come or gone meanwhile.

    Files packed by gzip, bzip2, xz or zstd are unpacked, whatever their names. Nobody can begin to
    read in the middle of such a file: the driver and each worker process unpack the whole file
    once, and once more for lines that are tried again. Give large data as many packed files, or
    unpacked.

    The spout looks for files once, at the start. A program may append whole lines to a file that is
    not packed while the spout reads it. Text after the last line end is a message too, since many
    files end without one; text appended to such a line later is a further message. You may delete a
    file once all its lines are acked. A file deleted earlier ends the run.

    Raises:
        ConfigError: the encoding is unknown, or has line ends of its own.
    """

    replayable = True

    def __init__(
        self, *paths: str | os.PathLike[str], field: str = "sentence", encoding: str = "utf-8"
    ) -> None:
        self.outputs: Outputs = f"{field} string"
        self._field = field
        self._encoding = plain_name(encoding)
        self._patterns = [os.fspath(path) for path in paths]
        self._cursors: dict[str, tuple[int, int]] = {}
        self._sizes: dict[str, int] = {}
        self._forms: dict[str, Form] = {}
        self._unpacked: Unpacked | None = None
        self._ended: set[str] = set()

    def check(self) -> None:
        """Look for the files."""
        self._find()

    def open(self, config: Config, context: TaskContext) -> None:
        """Find the files of this task."""
        tasks = len(context.component_tasks(context.component))
        # Not by the order of files: a cursor must find its task although other files come and go.
        self._sizes = {
            path: size
            for path, size in self._find().items()
            if _place_of(path, tasks) == context.task_index
        }
        for path in self._sizes:
            self._form(path)

    def close(self) -> None:
        """Close the packed file that is being planned."""
        if self._unpacked is not None:
            self._unpacked.close()
            self._unpacked = None

    def plan(self, limit: int) -> list[Split]:
        """Return the next lines of the first file with lines left."""
        for path in self._sizes:
            if self._has_more(path):
                split = self._next_lines(path, limit)
                if split.count:
                    return [split]
        return []

    def read(self, split: Split) -> Iterable[ReadItem | pa.RecordBatch]:
        """Read the lines of a split at once.

        Lines missing since the plan, because the file was cut short, have expired.
        """
        data, encoding = _content(split), split.data.get("encoding", "utf-8")
        missing = len(data) < split.data["end"] - split.data["offset"]
        try:
            lines = data.decode(encoding).split("\n")
            unfit: dict[int, Expired | Unreadable] = {}
        except UnicodeDecodeError:
            lines, unfit = self._decoded(split, lines_of(data, encoding))
        # No line follows the last line end. A line cut in its middle has expired.
        if missing or not has_open_line(data, encoding):
            lines = lines[: np.count_nonzero(ends_of(data, encoding))]
        if b"\r" in data:
            lines = [line.removesuffix("\r") for line in lines]
        if not unfit and not missing:
            yield pa.record_batch([pa.array(lines, pa.string())], [self._field])
            return
        unfit |= dict.fromkeys(range(len(lines), split.to_read), EXPIRED)
        positions = [n for n in range(min(len(lines), split.to_read)) if n not in unfit]
        yield Messages(
            positions=positions,
            columns={self._field: [lines[n] for n in positions]},
            unfit={n: why for n, why in unfit.items() if n < split.to_read},
        )

    def origins(self, split: Split) -> Sequence[Mapping[str, Any]]:
        """Return the bytes of the lines that cannot be decoded."""
        lines = lines_of(_content(split), split.data.get("encoding", "utf-8"))
        _, unfit = self._decoded(split, lines)
        return [{"bytes": lines[n]} if n in unfit else {} for n in split.only or ()]

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

    def _form(self, path: str) -> Form:
        """Return how a file is written, as soon as the file has a first byte."""
        form = self._forms.get(path)
        if form is None:
            with _reading(path):
                form = form_of(path, self._encoding)
            if self._sizes[path]:
                self._forms[path] = form
        return form

    def _has_more(self, path: str) -> bool:
        """Return whether a file may have unplanned lines; a file planned to its end may be gone."""
        with _reading(path):
            try:
                self._sizes[path] = os.path.getsize(path)
            except FileNotFoundError as error:
                if self._is_left(path):
                    raise SpoutConnectionError(
                        f"{path!r} is gone, and was read only up to line "
                        f"{self._cursor(path)[1]:,}. Put it back, and start the topology again"
                    ) from error
        return self._is_left(path)

    def _is_left(self, path: str) -> bool:
        if path in self._forms and self._forms[path].packing:
            return path not in self._ended
        return self._cursor(path)[0] < self._sizes[path]

    def _next_lines(self, path: str, limit: int) -> Split:
        """Plan up to ``limit`` lines of a file; none if only a mark was left, or a packed end."""
        form, (offset, line) = self._form(path), self._cursor(path)
        offset = max(offset, form.mark)
        with _reading(path):
            end, count = _after_lines(self._reader(path, form), form.encoding, offset, limit)
        if count < limit:
            self._ended.add(path)
        self._cursors[path] = (end, line + count)
        data = {
            "path": path,
            "offset": offset,
            "end": end,
            "line": line,
            "packing": form.packing,
            "encoding": form.encoding,
        }
        return Split(count=count, data=data, size=end - offset)

    def _reader(self, path: str, form: Form) -> Callable[[int, int], bytes]:
        """Return a function that reads a file; the packed file in work stays open."""
        if not form.packing:
            return lambda offset, size: read_bytes(path, "", offset, size)
        if self._unpacked is None or self._unpacked.of[0] != path:
            self.close()
            self._unpacked = Unpacked(path, form.packing)
        return self._unpacked.read

    def _decoded(
        self, split: Split, lines: Sequence[bytes]
    ) -> tuple[list[str], dict[int, Expired | Unreadable]]:
        """Decode each line alone; return the texts, and the lines that have none."""
        texts: list[str] = []
        unfit: dict[int, Expired | Unreadable] = {}
        for number, line in enumerate(lines):
            try:
                texts.append(line.decode(split.data.get("encoding", "utf-8")))
            except UnicodeDecodeError as error:
                texts.append("")
                unfit[number] = Unreadable(
                    f"line {split.data['line'] + number + 1:,} of {split.data['path']!r} is not "
                    f"{error.encoding}: {error.reason} at byte {error.start}. If the file has "
                    f"another encoding, give it: LinesSpout(…, encoding='cp1252'), say"
                )
        return texts, unfit

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
        if error.errno is None:  # what the unpackers raise by themselves
            raise _damaged(path, error) from error
        raise SpoutConnectionError(
            f"cannot read {path!r}: {error.strerror or error}. Give a file that exists and that "
            f"this user may read"
        ) from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> SpoutConnectionError:
    return SpoutConnectionError(
        f"cannot unpack {path!r}: {error}. The file is damaged or not whole: give a whole one"
    )


def _content(split: Split) -> bytes:
    """Return the bytes of a split, fewer if the file was cut short."""
    data = split.data
    packing, size = data.get("packing", ""), data["end"] - data["offset"]
    return read_bytes(data["path"], packing, data["offset"], size)


def _after_lines(
    read: Callable[[int, int], bytes], encoding: str, offset: int, limit: int
) -> tuple[int, int]:
    """Return the offset after at most ``limit`` lines, and the number of lines.

    Fewer lines than ``limit`` are there at the end of the file only.
    """
    count, last = 0, b""
    while block := read(offset, BLOCK):
        ends = ends_of(block, encoding)
        number = int(np.count_nonzero(ends))
        if count + number >= limit:
            units = int(np.flatnonzero(ends)[limit - count - 1]) + 1
            return offset + units * unit_of(encoding).itemsize, limit
        count, offset, last = count + number, offset + len(block), block
    return offset, count + has_open_line(last, encoding)
