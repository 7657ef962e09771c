"""The PostgresQueueSpout: emits the rows of a table that is a queue."""

from collections.abc import Callable

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.postgres.queue import PostgresQueue
from sparkstorm.postgres.server import Postgres
from sparkstorm.postgres.table import QueueTable
from sparkstorm.queues.decoding import Decoder
from sparkstorm.queues.queue import Queue
from sparkstorm.queues.spout import QueueSpout

__all__ = ["PostgresQueueSpout"]


class PostgresQueueSpout(QueueSpout):
    """Emits the rows of a table; an acked row is deleted, or marked as done.

    ``sparkstorm postgres-queue-ddl TABLE`` prints the table. Insert rows in the transaction that
    makes the work: rows and work are then there together, or not at all.

    Args:
        table: the table's name, or a :class:`QueueTable` with the names of its columns.
        dsn: how to connect, as libpq takes it; or a function that returns such a text, called
            where the connection is made. Never shown with its password.
        lease_secs: a row whose task is silent for so long goes to another.
        poll_secs: the pause between two looks at an empty table; ``NOTIFY`` cuts it short.
        timeout_secs: a connection whose server does not answer for so long counts as lost.
        options: those of :class:`~sparkstorm.queues.spout.QueueSpout`.

    >>> PostgresQueueSpout("app.jobs", dsn="postgresql://localhost/shop", decode="json")
    PostgresQueueSpout('app.jobs')
    """

    default_pending = 50_000
    max_waiting = 2000

    def __init__(
        self,
        table: str | QueueTable,
        *,
        dsn: str | Callable[[], str],
        lease_secs: float = 60.0,
        poll_secs: float = 0.5,
        timeout_secs: float = 8.0,
        fields: str = "body",
        decode: Decoder = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> None:
        super().__init__(
            fields=fields,
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )
        self._table = table if isinstance(table, QueueTable) else QueueTable(name=table)
        self._server = Postgres(address=dsn, timeout_secs=timeout_secs)
        self._lease_secs = lease_secs
        self._poll_secs = poll_secs
        self._queue_for("-")  # finds mistakes where the spout is made

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own connection."""
        return self._queue_for(f"{context.topology}/{context.component}/{context.task_index}")

    def _queue_for(self, consumer: str) -> PostgresQueue:
        return PostgresQueue(
            self._server,
            self._table,
            consumer,
            lease_secs=self._lease_secs,
            poll_secs=self._poll_secs,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._table.name!r})"
