"""One connection to a Kestrel server; it holds one open item at most."""

import socket
import time
from typing import final

from sparkstorm.errors import EnvironmentFault
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.texts.user_errors import words_of

__all__ = ["Link"]


@final
class Link:
    """A socket with one command under way at most.

    Args:
        server: the address, ``host:port``.
        timeout_secs: an answer that takes longer, beside its own waiting, is given up: the server
            may be gone.
    """

    def __init__(self, server: str, timeout_secs: float) -> None:
        self.server = server
        self._timeout_secs = timeout_secs
        self._deadline = 0.0
        self._buffer = b""
        host, _, port = server.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=timeout_secs)
        except OSError as error:
            raise self._lost(error) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """The socket's number, for ``select``."""
        return self._socket.fileno()

    def check(self) -> None:
        """Look whether a Kestrel answers.

        Raises:
            EnvironmentFault: something else answers.
        """
        self._send(b"version\r\n", 0.0)
        answer = self._receive_until(b"\r\n")
        if not answer.startswith(b"VERSION"):
            raise EnvironmentFault(
                f"{self.server} is no Kestrel: it answered {answer[:40]!r}. Mend the address"
            )

    def get(self, key: str, wait_secs: float = 0.0) -> None:
        """Send a ``get``; the server may wait so long before it answers."""
        self._send(f"get {key}\r\n".encode(), wait_secs)

    def overdue(self) -> bool:
        """Whether the answer is late: the connection is open and carries nothing."""
        return time.monotonic() > self._deadline

    def read(self) -> bool:
        """Read what has arrived; return whether the answer is whole."""
        try:
            piece = self._socket.recv(1 << 18)
        except OSError as error:
            raise self._lost(error) from error
        if not piece:
            raise QueueLostError(f"{self.server} has closed the connection")
        self._buffer += piece
        return self._is_whole()

    def answer(self) -> bytes | None:
        """Take the whole answer: the item's body, or None if there was no item."""
        head, _, rest = self._buffer.partition(b"\r\n")
        self._buffer = b""
        if head == b"END":
            return None
        return rest[: int(head.split()[3])]

    def end(self) -> None:
        """Wait for the answer to a ``close`` or ``abort``.

        Raises:
            QueueLostError: there is none, so the command may have been carried out or not.
        """
        while not self._is_whole():
            if self.overdue():
                raise self.late()
            self.read()
        self.answer()

    def late(self) -> QueueLostError:
        """Return the error of a server that does not answer."""
        return QueueLostError(f"{self.server} has not answered for {self._timeout_secs:g} s")

    def close(self) -> None:
        """Close the connection: an open item is ready for others."""
        self._socket.close()

    def _send(self, command: bytes, wait_secs: float) -> None:
        self._deadline = time.monotonic() + wait_secs + self._timeout_secs
        try:
            self._socket.sendall(command)
        except OSError as error:
            raise self._lost(error) from error

    def _receive_until(self, end: bytes) -> bytes:
        while not self._buffer.endswith(end):
            try:
                piece = self._socket.recv(4096)
            except OSError as error:
                raise self._lost(error) from error
            if not piece or len(self._buffer) > 4096:
                break
            self._buffer += piece
        answer, self._buffer = self._buffer, b""
        return answer

    def _is_whole(self) -> bool:
        """Whether the buffer has an answer to its end.

        Raises:
            QueueLostError: the server has refused the command.
        """
        head, found, rest = self._buffer.partition(b"\r\n")
        if not found or head == b"END":
            return bool(found)
        words = head.split()
        if len(words) < 4 or words[0] != b"VALUE":
            raise QueueLostError(f"{self.server} answered {head[:80]!r}")
        return len(rest) >= int(words[3]) + len(b"\r\nEND\r\n")

    def _lost(self, error: OSError) -> QueueLostError:
        return QueueLostError(f"{self.server}: {words_of(error)}")
