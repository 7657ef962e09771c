"""The queue in memory passes the suite of all queues, with leases of both kinds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sparkstorm.queues import QueueSpout
from sparkstorm.testing.queues import (
    MemoryQueue,
    MemoryQueueServer,
    MemoryQueueSpout,
    QueueBench,
    QueueConformance,
)


class MemoryBench(QueueBench):
    """A queue in this process."""

    freezes = False

    def __init__(self, lease_secs: float | None) -> None:
        self.lease_secs = lease_secs
        self.server = MemoryQueueServer(lease_secs=lease_secs)

    def spout(self, *, decode: str = "string", max_pending: int | None = None) -> QueueSpout:
        return MemoryQueueSpout(self.server, decode=decode, max_pending=max_pending)  # type: ignore[arg-type]

    def send(self, bodies: Sequence[bytes]) -> None:
        self.server.send(bodies)

    def counts(self) -> tuple[int, int]:
        return self.server.ready, self.server.pending

    def stop(self) -> None:
        self.server.away = True

    def start(self) -> None:
        self.server.away = False

    def consumer_dies(self, count: int) -> None:
        """Take messages, and vanish: no process can be killed that would leave the queue alive."""
        queue = MemoryQueue(self.server)
        queue.connect()
        assert len(queue.take(count, 0)) == count
        queue.close()


class TestLeasesOfATime(QueueConformance):
    """As SQS has them."""

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield MemoryBench(0.3)


class TestLeasesOfAConnection(QueueConformance):
    """As RabbitMQ and Kestrel have them."""

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield MemoryBench(None)
