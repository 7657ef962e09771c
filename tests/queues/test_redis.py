"""Redis Streams: the suite of all queues on a real Redis, and Redis's own troubles."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from sparkstorm.queues import QueueSpout
from sparkstorm.queues.redis import Redis, RedisStreamQueue, RedisStreamSpout
from sparkstorm.testing.queues import QueueBench, QueueConformance
from sparkstorm.testing.servers import RedisServer

pytestmark = pytest.mark.e2e

LEASE_SECS = 1.0


@pytest.fixture(scope="module")
def server(started: Callable[[RedisServer], RedisServer]) -> Iterator[RedisServer]:
    """One server for all tests of the file; each test empties it."""
    with started(RedisServer()) as found:
        yield found


@pytest.fixture
def client(server: RedisServer) -> Iterator[Any]:
    """A bare client of the empty server."""
    with client_of(server) as found:
        found.execute_command("FLUSHALL")
        yield found


def client_of(server: RedisServer) -> Any:
    """Return a client without a connection, for ``with``."""
    return Redis(url=server.url).client("test")


def queue_of(server: RedisServer, consumer: str = "a", **options: Any) -> RedisStreamQueue:
    options = {"lease_secs": LEASE_SECS, "start": "0", **options}
    return RedisStreamQueue(Redis(url=server.url), "s", "g", consumer, **options)


class RedisBench(QueueBench):
    """A stream with one group."""

    lease_secs = LEASE_SECS
    ordered = True

    def __init__(self, server: RedisServer) -> None:
        self.server = server

    def spout(self, *, decode: Any = "string", max_pending: int | None = None) -> QueueSpout:
        return RedisStreamSpout(
            Redis(url=self.server.url, timeout_secs=2),
            "s",
            group="g",
            start="0",
            lease_secs=LEASE_SECS,
            delete=True,
            decode=decode,
            max_pending=max_pending,
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        with client_of(self.server) as client:
            for body in bodies:
                client.execute_command("XADD", "s", "*", "body", body)

    def counts(self) -> tuple[int, int]:
        with client_of(self.server) as client:
            pending = client.execute_command("XPENDING", "s", "g", "-", "+", 1000)
            length = client.execute_command("XLEN", "s")
        leased = sum(entry[2] < LEASE_SECS * 1000 for entry in pending)
        return length - leased, leased

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        os.kill(self.server._process.pid, signal.SIGSTOP)  # type: ignore[union-attr]

    def thaw(self) -> None:
        os.kill(self.server._process.pid, signal.SIGCONT)  # type: ignore[union-attr]


class TestRedisStreams(QueueConformance):
    """Redis keeps the promises of all queues."""

    server: ClassVar[RedisServer]

    @pytest.fixture(autouse=True)
    def _with_server(self, server: RedisServer) -> None:
        type(self).server = server

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        with client_of(self.server) as client:
            client.execute_command("FLUSHALL")
        yield RedisBench(self.server)
