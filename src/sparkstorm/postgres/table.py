"""A table that is a queue: the names of its columns."""

from dataclasses import dataclass
from typing import final

from sparkstorm.errors import ConfigError

__all__ = ["QueueTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTable:
    """The names of a queue's table and columns; the table is the user's own.

    Attributes:
        name: the table, perhaps with its schema: ``"jobs"``, ``"app.jobs"``.
        id: a unique column; rows of one priority are read in its order.
        body: the payload: ``bytea``, ``text``, ``json``, ``jsonb`` or another type with a text
            form. NULL is an empty body.
        locked_until: ``timestamptz``, the end of the lease. A later time at the insert delays the
            row.
        attempts: an integer, how often the row was handed out.
        priority: a column; rows of a higher value are read first. None: there is none.
        done: ``timestamptz``; an acked row stays in the table with the time of its ack. None: an
            acked row is deleted.
        channel: the channel of ``NOTIFY`` for new rows; by default the table's name.

    >>> QueueTable(name="app.jobs", body="payload").channel
    'app.jobs'
    """

    name: str
    id: str = "id"
    body: str = "body"
    locked_until: str = "locked_until"
    attempts: str = "attempts"
    priority: str | None = None
    done: str | None = None
    channel: str = ""

    def __post_init__(self) -> None:
        if not (all(self.parts) and all(self.columns)):
            raise ConfigError(f"a table or a column has no name: {self.name!r}, {self.columns}")
        if len(set(self.columns)) < len(self.columns):
            raise ConfigError(f"two columns of {self.name} have one name: {self.columns}")
        if not self.channel:
            object.__setattr__(self, "channel", self.name)
        if len(self.channel.encode()) > _LONGEST_NAME:
            raise ConfigError(f"channel {self.channel!r} has more than {_LONGEST_NAME} bytes")

    @property
    def parts(self) -> tuple[str, ...]:
        """The schema, if given, and the table."""
        return tuple(self.name.split("."))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns in use."""
        optional = (one for one in (self.priority, self.done) if one is not None)
        return (self.id, self.body, self.locked_until, self.attempts, *optional)


_LONGEST_NAME = 63
"""The most bytes of a name in PostgreSQL."""
