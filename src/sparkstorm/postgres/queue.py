"""A table as a queue: rows are leased by a time in a column, on the server's clock.

A row lock in an open transaction would be a lease as well, and its end needs no time. But trees of
messages take seconds or minutes: transactions so long hold back VACUUM in the whole database, take
a connection each, and end with it although the work goes on. A time in a column survives the
connection, and anyone sees it. ``SKIP LOCKED`` keeps takers out of each other's way for the moment
of taking.

The number of attempts fences a lease: every hand-out raises the number, an extension does not.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, LiteralString, NamedTuple, cast, final

from sparkstorm.errors import ConfigError
from sparkstorm.postgres.address import psycopg, sql
from sparkstorm.postgres.checks import check_table, error_of
from sparkstorm.postgres.connection import TimedConnection, connect
from sparkstorm.postgres.server import Postgres
from sparkstorm.postgres.table import QueueTable
from sparkstorm.queues.queue import Delivery, Lease, QueueLostError
from sparkstorm.texts.credentials import untold

__all__ = ["PostgresQueue"]

_SHORTEST_LEASE_SECS = 0.1

_LOCK_SECS = 2
"""How long to wait for a row that someone else has locked."""

_TAKE = """
WITH next AS MATERIALIZED (
    SELECT {id} AS id FROM {table} WHERE {locked_until} <= clock_timestamp() {undone}
    ORDER BY {order} LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE {table} AS job
    SET {locked_until} = clock_timestamp() + %(lease)s, {attempts} = job.{attempts} + 1
    FROM next WHERE job.{id} = next.id
    RETURNING job.*
)
SELECT {id}, {body}, {attempts}, {locked_until} FROM taken ORDER BY {order}
"""

_MOVE = """
WITH mine AS (
    SELECT job.{id} AS id FROM {table} AS job
    JOIN unnest(%(ids)s::{type}[], %(attempts)s::bigint[]) AS lease (id, attempts)
    ON job.{id} = lease.id AND job.{attempts} = lease.attempts
    WHERE TRUE {undone} ORDER BY 1 FOR UPDATE OF job
)
UPDATE {table} AS job SET {locked_until} = clock_timestamp() + %(lease)s
FROM mine WHERE job.{id} = mine.id RETURNING job.{id}
"""
"""Rows are locked in one order, so that two such statements cannot wait for each other."""

_DELETE = "DELETE FROM {table} WHERE {id} = ANY(%(ids)s::{type}[])"
_DONE = "UPDATE {table} SET {done} = clock_timestamp() WHERE {id} = ANY(%(ids)s::{type}[])"


class _RowLease(NamedTuple):
    """A row, and how often it had been handed out when the lease began."""

    row: Any
    attempts: int


@final
class PostgresQueue:
    """One connection to a table that is a queue.

    Args:
        server: the database.
        table: the table and its columns.
        consumer: shows in ``pg_stat_activity``.
        lease_secs: after so many seconds without an extension a row goes to others.
        poll_secs: the pause between two looks at an empty queue; ``NOTIFY`` cuts it short.
    """

    leases_survive = True

    def __init__(
        self,
        server: Postgres,
        table: QueueTable,
        consumer: str,
        *,
        lease_secs: float = 60.0,
        poll_secs: float = 0.5,
    ) -> None:
        if not lease_secs >= _SHORTEST_LEASE_SECS:
            raise ConfigError(
                f"lease_secs is {lease_secs}: give a number from {_SHORTEST_LEASE_SECS} up"
            )
        if not poll_secs > 0:
            raise ConfigError(f"poll_secs is {poll_secs}: give a number above 0")
        self._server = server
        self._table = table
        self._consumer = consumer
        self._lease_secs = lease_secs
        self._poll_secs = poll_secs
        self._connection: TimedConnection | None = None
        self._names: Mapping[str, sql.Composable] = {}
        self._look_at = 0.0

    @property
    def name(self) -> str:
        """The table and its server."""
        return f"table {self._table.name} of PostgreSQL at {self._server.place}"

    @property
    def lease_secs(self) -> float:
        """As given."""
        return self._lease_secs

    def connect(self) -> None:
        """Connect, and look whether the table has the columns, and may be changed.

        Raises:
            EnvironmentFault: credentials, rights, a missing table or column, a wrong type.
        """
        self.close()
        try:
            with self._translated():
                self._connection = connect(
                    self._server.dsn, f"sparkstorm {self._consumer}", self._server.timeout_secs
                )
                kinds = check_table(self._connection, self._table, self._server.place)
                self._names = _names(self._table, kinds)
                self._connection.execute(f"SET lock_timeout = '{_LOCK_SECS}s'")
                self._connection.execute(
                    sql.SQL("LISTEN {}").format(sql.Identifier(self._table.channel))
                )
        except BaseException:
            self.close()
            raise
        self._look_at = 0.0

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Lease rows; if there are none, wait for a notification."""
        if not limit:
            return ()
        with self._talking() as connection:
            if time.monotonic() < self._look_at and not _notified(connection, wait_secs):
                return ()
            rows = self._run(
                _TAKE, limit=limit, lease=timedelta(seconds=self._lease_secs)
            ).fetchall()
        # Rows may become ready without a notification: a lease ends, or a delay.
        self._look_at = 0.0 if rows else time.monotonic() + self._poll_secs
        return [
            Delivery(
                message_id=row,
                lease=_RowLease(row, attempts),
                body=bytes(body or b""),
                deliveries=attempts,
                attributes={"locked_until": until},
            )
            for row, body, attempts, until in rows
        ]

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Let leases last anew; return those of rows that others have taken, or deleted."""
        return self._move(leases, self._lease_secs)

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Delete rows, or mark them as done; return all while someone else has one locked."""
        rows = [cast(_RowLease, lease).row for lease in leases]
        with self._talking():
            try:
                self._run(_DONE if self._table.done else _DELETE, ids=rows)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                return leases
        return ()

    def give_back(self, leases: Collection[Lease]) -> None:
        """Let the leases end now."""
        self._move(leases, 0.0)
        if leases:
            with self._talking() as connection:
                connection.execute("SELECT pg_notify(%s, '')", [self._table.channel])

    def close(self) -> None:
        """Close the connection; rows stay leased until their time."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def __repr__(self) -> str:
        return f"PostgresQueue({self.name})"

    # --- statements ------------------------------------------------------------------------------

    def _move(self, leases: Collection[Lease], secs: float) -> list[Lease]:
        """Set the end of leases; return those that are not ours any more."""
        mine = [cast(_RowLease, lease) for lease in leases]
        if not mine:
            return []
        with self._talking():
            found = self._run(
                _MOVE,
                ids=[lease.row for lease in mine],
                attempts=[lease.attempts for lease in mine],
                lease=timedelta(seconds=secs),
            ).fetchall()
        kept = {row for (row,) in found}
        return [lease for lease in mine if lease.row not in kept]

    def _run(self, statement: LiteralString, **values: Any) -> "psycopg.Cursor[Any]":
        assert self._connection is not None  # noqa: S101 - see _talking
        return self._connection.execute(sql.SQL(statement).format(**self._names), values)

    @contextmanager
    def _talking(self) -> Iterator[TimedConnection]:
        if self._connection is None:
            raise QueueLostError(f"the connection of {self.name} is closed")
        with self._translated():
            yield self._connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise error_of(error, self._server.place) from untold(error)


def _notified(connection: TimedConnection, wait_secs: float) -> bool:
    """Wait for a notification; take all that have come."""
    return bool(list(connection.notifies(timeout=wait_secs, stop_after=1)))


def _names(table: QueueTable, kinds: Mapping[str, str]) -> dict[str, sql.Composable]:
    """Return what the statements leave open: names, quoted, and what depends on types."""
    body: sql.Composable = sql.Identifier(table.body)
    if kinds[table.body] != "bytea":
        body = sql.SQL("convert_to({}::text, 'UTF8')").format(body)
    order: list[sql.Composable] = [sql.Identifier(table.id)]
    if table.priority:
        order.insert(0, sql.SQL("{} DESC NULLS LAST").format(sql.Identifier(table.priority)))
    done = sql.Identifier(table.done or table.id)  # without such a column, no statement names it
    return {
        "table": sql.Identifier(*table.parts),
        "id": sql.Identifier(table.id),
        "body": body,
        "locked_until": sql.Identifier(table.locked_until),
        "attempts": sql.Identifier(table.attempts),
        "done": done,
        "undone": sql.SQL("AND {} IS NULL").format(done) if table.done else sql.SQL(""),
        "order": sql.SQL(", ").join(order),
        "type": sql.SQL(kinds[table.id]),  # a type's name from the catalogue
    }
