"""The PostgreSQL sink: writing to a database exactly once."""

from collections.abc import Callable, Sequence
from typing import Any

from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.components.functions import check_function
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.postgres.address import checked, psycopg, sql

__all__ = ["PostgresSink"]


class PostgresSink(CommitterBolt):
    """Writes tuples to PostgreSQL, each batch in one database transaction, exactly once.

    The same transaction stores the number of the batch. So a batch applied again after a crash, or
    by a driver long superseded, changes nothing. Readers see all of a batch or none of it.

    Args:
        dsn: how to connect, as psycopg and libpq take it, or a function that returns such a text,
            called where the connection is made. Never shown. A text travels to the executors with
            the topology. For a text without a password, libpq reads ``PGPASSWORD`` or a
            ``passfile``.
        statement: run for each tuple, with ``%s`` for each of its values in order. To do more, or
            something faster, override :meth:`apply`.
        transactions: the table of batch numbers, made if missing: a row for each sink of each
            checkpoint.

    ::

        builder.set_bolt(
            "accounts",
            PostgresSink(dsn, "UPDATE accounts SET balance = balance + %s WHERE id = %s"),
        ).shuffle_grouping("transfers")
        ss.submit(topology, config={"processing.guarantee": "exactly-once"}, …)
    """

    def __init__(
        self,
        dsn: str | Callable[[], str],
        statement: str = "",
        *,
        transactions: str = "sparkstorm_transactions",
    ) -> None:
        if not statement and type(self).apply is PostgresSink.apply:
            raise ConfigError("PostgresSink has nothing to do: give a statement, or override apply")
        check_function("dsn", dsn)
        self._dsn = dsn if callable(dsn) else checked(dsn, "PostgresSink")
        self._statement = statement
        self._transactions = transactions
        self._connection: psycopg.Connection[Any] | None = None

    def apply(self, cursor: "psycopg.Cursor[Any]", staged: Sequence[Any]) -> None:
        """Write the staged values of a batch, in an open transaction. Do not commit."""
        cursor.executemany(self._statement, staged)

    def connect(self, config: Config) -> None:
        """Connect, and make the table of batch numbers if it is missing."""
        connection = self._open()
        found = connection.execute("SELECT to_regclass(%s)", [self._table.as_string()]).fetchone()
        if found == (None,):
            connection.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (owner text PRIMARY KEY, txid bigint NOT NULL, "
                    "applied_at timestamptz NOT NULL DEFAULT now())"
                ).format(self._table)
            )

    def commit(self, transaction: Transaction, staged: Sequence[Any]) -> None:
        """Apply a batch, unless it is already applied.

        After a broken connection nobody knows whether the batch was applied: the next call finds
        out.
        """
        connection = self._open()
        try:
            with connection.transaction(), connection.cursor() as cursor:
                if self._is_new(cursor, transaction):
                    self.apply(cursor, staged)
        except psycopg.OperationalError:
            self.disconnect()
            raise

    def disconnect(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            dsn = checked(self._dsn(), "PostgresSink") if callable(self._dsn) else self._dsn
            self._connection = psycopg.connect(dsn, autocommit=True)
        return self._connection

    def _is_new(self, cursor: "psycopg.Cursor[Any]", transaction: Transaction) -> bool:
        """Store the number if it is higher than the last; concurrent callers wait."""
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} AS known (owner, txid) VALUES (%s, %s) ON CONFLICT (owner) "
                "DO UPDATE SET txid = excluded.txid, applied_at = now() "
                "WHERE known.txid < excluded.txid"
            ).format(self._table),
            [transaction.owner, transaction.txid],
        )
        return bool(cursor.rowcount)

    @property
    def _table(self) -> sql.Identifier:
        return sql.Identifier(*self._transactions.split("."))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._statement!r})"
