"""Mistakes that no later try mends: rights, missing columns, wrong types, refused logins."""

from collections.abc import Mapping
from typing import Any

from sparkstorm.errors import EnvironmentFault
from sparkstorm.postgres.address import psycopg, sql
from sparkstorm.postgres.connection import TimedConnection
from sparkstorm.postgres.table import QueueTable
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.texts.user_errors import words_of

__all__ = ["check_table", "error_of"]

_REFUSED = (
    "password authentication failed",
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    'role "',
    'database "',
    "pg_hba.conf rejects",
)
"""Words of refused logins: libpq gives no code for them. In other languages of a server they count
as a server that is away, and are shown as such."""

_NO_MEND = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.InvalidAuthorizationSpecification,
    psycopg.errors.InvalidCatalogName,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.DatatypeMismatch,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.NumericValueOutOfRange,
)

_COLUMNS = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_UNIQUE = """
SELECT count(*) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE indrelid = to_regclass(%s) AND attname = %s
AND indisunique AND indisvalid AND indnkeyatts = 1 AND indpred IS NULL
"""
_RIGHTS = """
SELECT right_ FROM unnest(ARRAY['SELECT', 'UPDATE', 'DELETE']) AS right_
WHERE NOT has_table_privilege(to_regclass(%s), right_) AND NOT (right_ = 'DELETE' AND %s)
"""
_INTEGERS = ("smallint", "integer", "bigint")
_TIME = "timestamp with time zone"


def check_table(connection: TimedConnection, table: QueueTable, place: str) -> Mapping[str, str]:
    """Return the types of the table's columns.

    Raises:
        EnvironmentFault: a column is missing or has a wrong type, or a right is missing.
        QueueLostError: the server takes no changes now.
    """
    where = f"PostgreSQL at {place}"
    if connection.execute("SHOW transaction_read_only").fetchone() == ("on",):
        raise QueueLostError(f"{where} takes no changes: it is a standby, or is set so")
    name = sql.Identifier(*table.parts).as_string()
    kinds: dict[str, str] = dict(connection.execute(_COLUMNS, [name]).fetchall())
    faults = _faults(table, kinds)
    if kinds and not faults:
        if connection.execute(_UNIQUE, [name, table.id]).fetchone() == (0,):
            faults.append(f"column {table.id} is not unique: make it the PRIMARY KEY")
        lacking = connection.execute(_RIGHTS, [name, table.done is not None]).fetchall()
        faults += [f"the user may not {right}: GRANT {right} ON {name}" for (right,) in lacking]
    if faults:
        raise EnvironmentFault(
            f"{where}: table {table.name} cannot be a queue: {'; '.join(faults)}"
        )
    return kinds


def error_of(error: BaseException, place: str) -> EnvironmentFault | QueueLostError:
    """Return psycopg's error as ours."""
    text = f"PostgreSQL at {place}: {' '.join(words_of(error).split())}"
    said = str(error)
    refused = isinstance(error, psycopg.OperationalError) and any(one in said for one in _REFUSED)
    if isinstance(error, _NO_MEND) or refused:
        return EnvironmentFault(text)
    return QueueLostError(text)


def _faults(table: QueueTable, kinds: Mapping[str, str]) -> list[str]:
    if not kinds:
        return ["there is no such table (sparkstorm postgres-queue-ddl prints one)"]
    missing = [name for name in table.columns if name not in kinds]
    if missing:
        return [f"there is no column {', '.join(missing)}, but {', '.join(kinds)}"]
    wanted: list[tuple[Any, tuple[str, ...]]] = [
        (table.locked_until, (_TIME,)),
        (table.done, (_TIME,)),
        (table.attempts, _INTEGERS),
    ]
    return [
        f"column {name} has the type {kinds[name]}: give it {' or '.join(types)}"
        for name, types in wanted
        if name is not None and kinds[name] not in types
    ]
