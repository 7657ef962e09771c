"""A hosted spout of the queue in :mod:`queue_server`: connects again until all is done."""

import json
import socket

import sparkstorm as ss
from sparkstorm.verdicts import Failure


class QueueSpout(ss.Spout):
    """Emits the lines of the queue; acks go back to it, and failures it hears of by silence.

    Args:
        port: where the queue listens on loopback.
    """

    outputs = "sentence string"

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = False

    def open(
        self, config: ss.Config, context: ss.TaskContext, collector: ss.SpoutCollector
    ) -> None:
        self._collector = collector
        self._socket: socket.socket | None = None
        self._rest = b""

    def next_tuple(self) -> None:
        for message in self._received():
            if "end" in message:
                self._ended = True
            else:
                self._collector.emit([message["line"]], msg_id=message["id"])

    def ack(self, msg_id: int) -> None:
        self._send({"ack": msg_id})

    def fail(self, msg_id: int, failure: Failure) -> None:
        """Hang up: the queue gives out again what is not acked."""
        self._hang_up()

    def exhausted(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._hang_up()

    def _received(self) -> list[dict[str, object]]:
        try:
            data = self._connection().recv(1 << 16)
            if not data:
                raise ConnectionResetError
        except (BlockingIOError, TimeoutError):
            return []
        except OSError:
            self._hang_up()
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _send(self, what: dict[str, object]) -> None:
        """Say it if the queue is there; what it does not hear it gives out again."""
        try:
            self._connection().sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            self._hang_up()

    def _connection(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=5)
            self._socket.settimeout(0.01)
        return self._socket

    def _hang_up(self) -> None:
        self._rest = b""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
