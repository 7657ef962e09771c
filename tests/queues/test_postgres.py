"""A table as a queue: the suite of all queues on a real PostgreSQL, and PostgreSQL's own troubles."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sparkstorm.postgres import PostgresQueueSpout, QueueTable, queue_ddl
from sparkstorm.queues import QueueSpout
from sparkstorm.testing.queues import QueueBench, QueueConformance
from sparkstorm.testing.servers import PostgresServer

try:
    import psycopg
except ImportError:
    psycopg = None

pytestmark = pytest.mark.e2e

LEASE_SECS = 1.0


@pytest.fixture(scope="module")
def server(started: Callable[[PostgresServer], PostgresServer]) -> Iterator[PostgresServer]:
    """One server for all tests of the file; each test makes its table."""
    with started(PostgresServer()) as found:
        yield found


def run(server: PostgresServer, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement in a connection of its own."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def make_table(server: PostgresServer, table: QueueTable) -> None:
    """Make the table anew."""
    run(server, f'DROP SCHEMA IF EXISTS "q" CASCADE')
    run(server, 'CREATE SCHEMA "q"')
    run(server, queue_ddl(table))


class PostgresBench(QueueBench):
    """A table of the printed statements."""

    lease_secs = LEASE_SECS
    ordered = True

    def __init__(self, server: PostgresServer, table: QueueTable) -> None:
        self.server = server
        self.table = table
        make_table(server, table)

    def spout(self, *, decode: Any = "string", max_pending: int | None = None) -> QueueSpout:
        return PostgresQueueSpout(
            self.table,
            dsn=self.server.dsn,
            lease_secs=LEASE_SECS,
            timeout_secs=2,
            decode=decode,
            max_pending=max_pending,
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        name = self.table.name
        for body in bodies:
            run(self.server, f"INSERT INTO {name} (body) VALUES (%s)", body)

    def counts(self) -> tuple[int, int]:
        name = self.table.name
        where = "WHERE done_at IS NULL" if self.table.done else ""
        ((pending, total),) = run(
            self.server,
            f"SELECT count(*) FILTER (WHERE locked_until > clock_timestamp()), count(*)"
            f" FROM {name} {where}",
        )
        return total - pending, pending

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, how: signal.Signals) -> None:
        pid = self.server._process.pid  # type: ignore[union-attr]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in [pid, *map(int, children)]:
            os.kill(each, how)


class TestPostgresTable(QueueConformance):
    """PostgreSQL keeps the promises of all queues."""

    server: ClassVar[PostgresServer]
    table: ClassVar[QueueTable] = QueueTable(name="q.jobs")

    @pytest.fixture(autouse=True)
    def _with_server(self, server: PostgresServer) -> None:
        type(self).server = server

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield PostgresBench(self.server, self.table)
