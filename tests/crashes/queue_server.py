"""A queue of lines in a process of its own, which may be killed and started again.

``python queue_server.py LINES ACKED PORT``: gives out the lines of a file over TCP on loopback,
each as ``{"id": 7, "line": "…"}``, and takes acks as ``{"ack": 7}``. What was acked is written down
in another file. Lines that were given out over a connection and not acked when that ends are given
out again over the next one; so are all that were not acked when the process was killed. When all
are acked it says ``{"end": true}``.
"""

import contextlib
import json
import socketserver
import sys
import threading
from pathlib import Path

_AHEAD = 600
"""So many lines are given out and not acked at most."""


class Queue:
    """The lines that are not acked."""

    def __init__(self, lines: Path, acked: Path) -> None:
        done = {int(number) for number in acked.read_text().split()} if acked.exists() else set()
        texts = enumerate(lines.read_text().splitlines())
        self._waiting = {number: text for number, text in texts if number not in done}
        self._given: dict[int, str] = {}
        self._journal = acked.open("a", buffering=1)
        self._lock = threading.Lock()

    @property
    def empty(self) -> bool:
        with self._lock:
            return not self._waiting and not self._given

    def take(self) -> list[tuple[int, str]]:
        """Give out as many lines as may be given out now."""
        with self._lock:
            some = list(self._waiting)[: max(0, _AHEAD - len(self._given))]
            taken = [(number, self._waiting.pop(number)) for number in some]
            self._given.update(taken)
            return taken

    def ack(self, number: int) -> None:
        """Write down that a line is done; it may be one that an earlier process gave out."""
        with self._lock:
            known = self._given.pop(number, None) or self._waiting.pop(number, None)
            if known is not None:
                self._journal.write(f"{number}\n")

    def put_back(self) -> None:
        """Nobody is there any more to ack what was given out."""
        with self._lock:
            self._waiting = {**self._given, **self._waiting}
            self._given = {}


class Connection(socketserver.StreamRequestHandler):
    """The one consumer."""

    queue: Queue

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the consumer was killed
            self._give()
            for line in self.rfile:
                self.queue.ack(json.loads(line)["ack"])
                self._give()

    def finish(self) -> None:
        self.queue.put_back()

    def _give(self) -> None:
        for number, text in self.queue.take():
            self._say({"id": number, "line": text})
        if self.queue.empty:
            self._say({"end": True})

    def _say(self, what: dict[str, object]) -> None:
        self.wfile.write(json.dumps(what).encode() + b"\n")


class Server(socketserver.TCPServer):
    """One connection after the other."""

    allow_reuse_address = True


if __name__ == "__main__":
    Connection.queue = Queue(Path(sys.argv[1]), Path(sys.argv[2]))
    with Server(("127.0.0.1", int(sys.argv[3])), Connection) as server:
        server.serve_forever()
