"""A Kestrel for tests: the queue server that Storm's first spouts read from."""

import sys
from pathlib import Path
from typing import final

from sparkstorm.testing.servers.process import ServerProcess, ask, free_ports

__all__ = ["KestrelServer"]


@final
class KestrelServer(ServerProcess):
    """A small Kestrel of our own, in a process of its own; items survive its end.

    No package carries a Kestrel any more, so :mod:`kestrel_process` speaks its protocol.
    """

    def __init__(self) -> None:
        super().__init__()
        (self._port,) = free_ports(1)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    def set(self, queue: str, body: bytes) -> None:
        """Put an item into a queue.

        Raises:
            ConnectionError: the server did not take it.
        """
        request = f"set {queue} 0 0 {len(body)}\r\n".encode() + body + b"\r\n"
        if self._ask(request, b"\r\n") != b"STORED\r\n":
            raise ConnectionError(f"{self!r} did not store an item")

    def stats(self) -> dict[str, str]:
        """Return the answer to ``stats``: ``queue_<name>_items`` and more."""
        lines = self._ask(b"stats\r\n", b"END\r\n").decode().splitlines()
        return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("STAT "))

    def _ask(self, request: bytes, end: bytes) -> bytes:
        return ask("127.0.0.1", self._port, request, 1 << 20, end=end)

    def _command(self) -> list[str]:
        data = self._folder / "data"
        data.mkdir(exist_ok=True)
        program = str(Path(__file__).with_name("kestrel_process.py"))
        return [sys.executable, "-I", program, str(self._port), str(data)]

    def _answers(self) -> bool:
        return self._ask(b"version\r\n", b"\r\n").startswith(b"VERSION")
