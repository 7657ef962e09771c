"""The link between the driver and the reader process: a socket on this host, guarded by a token.

A message is a JSON head and any number of binary parts, each part after its length. Nothing
is unpickled from the socket. The reader asks, the driver answers:

``latest {start}``      → ``{end}``: start + 1 if batch ``start`` is planned, else start (long poll)
``partitions {start}``  → ``{partitions: […]}`` and one part per partition: its pickled loads
"""

import hmac
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

from sparkstorm.checkpoint.scratch import make_folder
from sparkstorm.errors import InternalError

__all__ = ["Answer", "LinkClient", "LinkServer"]

Answer: TypeAlias = tuple[dict[str, Any], Sequence[bytes]]
"""The head and the parts of a message."""

_MAX_HEAD = 64 * 1024 * 1024
_LONGEST_PATH = 100
"""Bytes of a Unix socket's path: systems take 103 or 107."""


@final
class LinkServer:
    """The driver's end: calls ``handle`` for each question, on a thread of the connection.

    Listens on a Unix socket in a folder that only this user may enter.
    """

    def __init__(self, handle: Callable[[dict[str, Any]], Answer]) -> None:
        self._handle = handle
        self.token = secrets.token_hex(16)
        self._folder = make_folder("link", longest=_LONGEST_PATH - len("/link"))
        self.path = str(self._folder / "link")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen()
        self._closed = False
        threading.Thread(target=self._accept, name="sparkstorm-link", daemon=True).start()

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._closed = True
        self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake the thread in accept
        self._socket.close()
        Path(self.path).unlink(missing_ok=True)
        self._folder.rmdir()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(connection,), name="sparkstorm-link-peer", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                head, _ = _receive(connection)
                if not hmac.compare_digest(str(head.get("token")), self.token):
                    return  # no answer: a stranger learns nothing
                while True:
                    question, _ = _receive(connection)
                    _send(connection, *self._answer(question))
            except (ConnectionError, OSError):
                return

    def _answer(self, question: dict[str, Any]) -> Answer:
        try:
            return self._handle(question)
        except Exception as error:  # noqa: BLE001 - the loop's edge: the reader must hear of it
            return {"error": f"{type(error).__name__}: {error}"}, ()


@final
class LinkClient:
    """The reader's end. Connects at the first question, so Spark can pickle a client before."""

    def __init__(self, path: str, token: str) -> None:
        self._path = path
        self._token = token
        self._socket: socket.socket | None = None

    def ask(self, question: dict[str, Any]) -> Answer:
        """Ask the driver and wait for its answer.

        Raises:
            InternalError: the driver answered with an error.
            ConnectionError: the driver is gone.
        """
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(self._path)
            _send(self._socket, {"token": self._token, "pid": os.getpid()}, ())
        _send(self._socket, question, ())
        head, parts = _receive(self._socket)
        if "error" in head:
            raise InternalError(f"the driver could not answer {question}: {head['error']}")
        return head, parts

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_token": self._token, "_socket": None}


def _send(connection: socket.socket, head: dict[str, Any], parts: Sequence[bytes]) -> None:
    encoded = json.dumps({**head, "parts": [len(part) for part in parts]}).encode()
    connection.sendall(b"".join([len(encoded).to_bytes(8, "little"), encoded, *parts]))


def _receive(connection: socket.socket) -> Answer:
    length = int.from_bytes(_exactly(connection, 8), "little")
    if length > _MAX_HEAD:
        raise ConnectionError("the peer does not speak this protocol")
    head = json.loads(_exactly(connection, length))
    return head, [_exactly(connection, size) for size in head.pop("parts")]


def _exactly(connection: socket.socket, size: int) -> bytes:
    buffer = bytearray(size)
    view, filled = memoryview(buffer), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if not count:
            raise ConnectionError("the peer has closed the link")
        filled += count
    return bytes(buffer)
