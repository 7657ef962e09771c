"""The pipes of a kept process, in the hands of the worker that is attached to it."""

import os
import select
from collections.abc import Mapping
from io import FileIO
from math import ceil
from typing import Final, final

from sparkstorm.errors import ProcessLostError
from sparkstorm.processes.keeper import CHUNK, write_at

__all__ = ["Pipes"]

_LOG_BYTES: Final = 64 * 1024
"""So much output is written to the journal at once."""

_READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR


@final
class Pipes:
    """Standard input, output and error of a process, and the journal of its output.

    The descriptors are closed with the object. Nothing blocks but :meth:`wait`.

    Args:
        descriptors: by name: ``in``, ``out``, ``err``, ``journal``. A pipe that the process has
            closed is not there.
        size: how many bytes of output the journal holds.
        read: how many of them an earlier run of this batch has read.
        keeps: whether output is written to the journal: outside of a batch nobody reads it again.
        keeper: the descriptor of the connection to the keeper, which :meth:`wait` watches as well.
    """

    def __init__(
        self,
        descriptors: Mapping[str, int],
        *,
        size: int,
        read: int,
        keeps: bool,
        keeper: int,
    ) -> None:
        self._files = {name: FileIO(number, "r+") for name, number in descriptors.items()}
        self._size = self._earlier = size
        self._read_before = read
        self._keeps = keeps
        self._at = 0
        self._unlogged = bytearray()
        self._outbox = bytearray()
        self._keeper = keeper
        self._poll = select.poll()
        self._poll.register(keeper, _READABLE)
        for name in ("out", "err"):
            if name in self._files:
                self._poll.register(self._files[name], _READABLE)
        self._awaits_room = False

    @property
    def size(self) -> int:
        """How many bytes the journal holds after :meth:`log`."""
        return self._size

    def read(self, unread: int) -> int:
        """Return how many bytes of the journal this attachment has read, but for the last ones.

        Args:
            unread: so many of the last bytes of output count as not read.
        """
        return max(self._at - unread, 0) if self._keeps else self._at

    @property
    def unwritten(self) -> bytes:
        """Bytes that wait until standard input takes them."""
        return bytes(self._outbox)

    def write(self, data: bytes) -> None:
        """Queue bytes for standard input."""
        self._outbox += data

    def earlier(self) -> tuple[bytes, bytes]:
        """Return the next output from before this attachment: read by an earlier run, and unread.

        One of both is empty; both are at the end.
        """
        again = self._at < self._read_before
        end = self._read_before if again else self._earlier
        if self._at >= end:
            return b"", b""
        data = os.pread(self._files["journal"].fileno(), min(CHUNK, end - self._at), self._at)
        self._at += len(data)
        return (data, b"") if again else (b"", data)

    def wait(self, secs: float) -> tuple[bytes, bytes, bool]:
        """Move bytes; wait at most ``secs`` if none can be moved.

        Returns:
            standard output, standard error, and whether the keeper has sent something.
        """
        self._push()
        ready = {number for number, _ in self._poll.poll(ceil(secs * 1000))}
        if self._awaits_room:
            self._push()
        out = self._read("out") if self._is_in("out", ready) else b""
        # What was written to standard error before this output must be told before it.
        err = self._read("err") if out or self._is_in("err", ready) else b""
        return out, err, self._keeper in ready

    def drain(self) -> tuple[bytes, bytes]:
        """Return the last output and errors of a process that has ended."""
        found = {name: bytearray() for name in ("out", "err")}
        for name, data in found.items():
            while piece := self._read(name):
                data += piece
        return bytes(found["out"]), bytes(found["err"])

    def log(self) -> None:
        """Write the output that was read to the journal.

        Raises:
            ProcessLostError: the journal's disk is full.
        """
        try:
            write_at(self._files["journal"].fileno(), self._unlogged, self._size)
        except OSError as error:
            raise ProcessLostError(f"a process's output cannot be kept: {error}") from error
        self._size += len(self._unlogged)
        self._unlogged.clear()

    def close(self) -> None:
        """Close the descriptors of this side."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _is_in(self, name: str, ready: set[int]) -> bool:
        return name in self._files and self._files[name].fileno() in ready

    def _read(self, name: str) -> bytes:
        file = self._files.get(name)
        if file is None:
            return b""
        try:
            data = os.read(file.fileno(), CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._poll.unregister(file)
            self._drop(name)
        elif name == "out":
            self._note(data)
        return data

    def _note(self, output: bytes) -> None:
        if not self._keeps:
            return
        self._at += len(output)
        self._unlogged += output
        if len(self._unlogged) >= _LOG_BYTES:
            self.log()

    def _push(self) -> None:
        """Write as much as standard input takes, and watch for room if something is left."""
        file = self._files.get("in")
        if file is None:
            self._outbox.clear()
            return
        try:
            while self._outbox:
                del self._outbox[: os.write(file.fileno(), self._outbox[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:  # closed there: the output or the keeper tells how the process ended
            self._outbox.clear()
        if bool(self._outbox) != self._awaits_room:
            self._awaits_room = bool(self._outbox)
            if self._awaits_room:
                self._poll.register(file, select.POLLOUT)
            else:
                self._poll.unregister(file)

    def _drop(self, name: str) -> None:
        self._files.pop(name).close()
