"""A table of PostgreSQL for the tests of all queues."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparkstorm.postgres import PostgresQueueSpout, QueueTable, queue_ddl
from sparkstorm.testing.queues import QueueBench
from sparkstorm.testing.servers import PostgresServer

try:
    import psycopg
except ImportError:
    psycopg = None

JOBS = QueueTable(name="q.jobs")


def run(server: PostgresServer, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement in a connection of its own."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def make_table(server: PostgresServer, table: QueueTable) -> None:
    """Make the table anew."""
    run(server, 'DROP SCHEMA IF EXISTS "q" CASCADE')
    run(server, 'CREATE SCHEMA "q"')
    run(server, queue_ddl(table))


class PostgresBench(QueueBench):
    """A table of the printed statements."""

    ordered = True

    def __init__(self, server: PostgresServer, lease_secs: float) -> None:
        self.server = server
        self.lease_secs: float = lease_secs
        make_table(server, JOBS)

    def spout(
        self,
        *,
        decode: Any = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> PostgresQueueSpout:
        return PostgresQueueSpout(
            JOBS,
            dsn=self.server.dsn,
            lease_secs=self.lease_secs,
            timeout_secs=2,
            fields="sentence",
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )

    def send(self, bodies: Sequence[bytes]) -> None:
        with psycopg.connect(self.server.dsn) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO q.jobs (body) VALUES (%s)", [[one] for one in bodies])

    def counts(self) -> tuple[int, int]:
        leased = "count(*) FILTER (WHERE locked_until > clock_timestamp())"
        ((pending, total),) = run(self.server, f"SELECT {leased}, count(*) FROM q.jobs")  # noqa: S608
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
