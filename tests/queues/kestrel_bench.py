"""A Kestrel queue, for the suite and for tests of its own."""

import itertools
from collections.abc import Sequence
from typing import Any

from sparkstorm.queues import QueueSpout
from sparkstorm.queues.kestrel import KestrelSpout
from sparkstorm.testing.queues import QueueBench
from sparkstorm.testing.servers import KestrelServer

_numbers = itertools.count()


class KestrelBench(QueueBench):
    """A new queue on one server or several; items go to the servers in turns."""

    def __init__(self, *servers: KestrelServer) -> None:
        self.servers = servers
        self.queue = f"queue{next(_numbers)}"
        self._turns = itertools.cycle(servers)

    def spout(
        self, *, decode: Any = "string", max_pending: int | None = None, **more: Any
    ) -> QueueSpout:
        return KestrelSpout(
            self.queue,
            [server.address for server in self.servers],
            timeout_secs=2,
            decode=decode,
            max_pending=max_pending,
            **more,
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            next(self._turns).set(self.queue, body)

    def counts(self) -> tuple[int, int]:
        stats = [server.stats() for server in self.servers]
        ready = sum(int(one.get(f"queue_{self.queue}_items", 0)) for one in stats)
        pending = sum(int(one.get(f"queue_{self.queue}_open_transactions", 0)) for one in stats)
        return ready, pending

    def stop(self) -> None:
        for server in self.servers:
            server.kill()

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def freeze(self) -> None:
        for server in self.servers:
            server.freeze()

    def thaw(self) -> None:
        for server in self.servers:
            server.thaw()
