"""The statements that make a table a queue."""

from sparkstorm.postgres.address import sql
from sparkstorm.postgres.table import QueueTable

__all__ = ["queue_ddl"]

_TABLE = """\
-- A queue for sparkstorm's PostgresQueueSpout.
-- fillfactor leaves room, so that an update of a lease stays on its page and touches no index.
CREATE TABLE {table} (
    {id} bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    {body} bytea,
    {locked_until} timestamptz NOT NULL DEFAULT '-infinity',
    {attempts} integer NOT NULL DEFAULT 0{more}
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
"""
_PRIORITY = ",\n    {} integer NOT NULL DEFAULT 0"
_DONE = ",\n    {} timestamptz"
_INDEX = "CREATE INDEX ON {table} ({columns}){where};\n"
_NOTIFY = """\

-- Wakes the spouts at once; without it, they look at the table now and then.
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify({channel}, '');
    RETURN NULL;
END $$;
CREATE TRIGGER {trigger} AFTER INSERT ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
"""


def queue_ddl(table: QueueTable) -> str:
    """Return the statements that make a queue's table, its index and its trigger.

    >>> print(queue_ddl(QueueTable(name="jobs")).splitlines()[2])
    CREATE TABLE "jobs" (
    """
    more = _PRIORITY.format(_quoted(table.priority)) if table.priority else ""
    more += _DONE.format(_quoted(table.done)) if table.done else ""
    text = _TABLE.format(
        table=_quoted(*table.parts),
        id=_quoted(table.id),
        body=_quoted(table.body),
        locked_until=_quoted(table.locked_until),
        attempts=_quoted(table.attempts),
        more=more,
    )
    return text + _index(table) + _trigger(table)


def _index(table: QueueTable) -> str:
    """Return an index in the order of reading, if the primary key has another order."""
    if table.priority is None and table.done is None:
        return ""
    first = [f"{_quoted(table.priority)} DESC"] if table.priority else []
    return _INDEX.format(
        table=_quoted(*table.parts),
        columns=", ".join([*first, _quoted(table.id)]),
        where=f" WHERE {_quoted(table.done)} IS NULL" if table.done else "",
    )


def _trigger(table: QueueTable) -> str:
    *schema, name = table.parts
    return _NOTIFY.format(
        table=_quoted(*table.parts),
        function=_quoted(*schema, f"{name}_notify"),
        trigger=_quoted(f"{name}_notify"),
        channel=sql.Literal(table.channel).as_string(),
    )


def _quoted(*names: str) -> str:
    return str(sql.Identifier(*names).as_string())
