"""A Redis stream for the tests of all queues."""

import os
import signal
from collections.abc import Sequence
from typing import Any

from sparkstorm.queues.redis import Redis, RedisStreamSpout
from sparkstorm.testing.queues import QueueBench
from sparkstorm.testing.servers import RedisServer


def client_of(server: RedisServer) -> Any:
    """Return a client without a connection, for ``with``."""
    return Redis(url=server.url).client()


class RedisBench(QueueBench):
    """A stream with one group."""

    ordered = True

    def __init__(self, server: RedisServer, lease_secs: float) -> None:
        self.server = server
        self.lease_secs: float = lease_secs
        with client_of(server) as client:
            client.execute_command("FLUSHALL")

    def spout(
        self,
        *,
        decode: Any = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> RedisStreamSpout:
        return RedisStreamSpout(
            "s",
            url=self.server.url,
            timeout_secs=2,
            group="g",
            start="0",
            lease_secs=self.lease_secs,
            delete=True,
            fields="sentence",
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        with client_of(self.server) as client:
            pipeline = client.pipeline(transaction=False)
            for body in bodies:
                pipeline.execute_command("XADD", "s", "*", "body", body)
            pipeline.execute()

    def counts(self) -> tuple[int, int]:
        with client_of(self.server) as client:
            pending = client.execute_command("XPENDING", "s", "g", "-", "+", 1000)
            length = client.execute_command("XLEN", "s")
        leased = sum(entry[2] < self.lease_secs * 1000 for entry in pending)
        return length - leased, leased

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        os.kill(self.server._process.pid, signal.SIGSTOP)  # type: ignore[union-attr]

    def thaw(self) -> None:
        os.kill(self.server._process.pid, signal.SIGCONT)  # type: ignore[union-attr]
