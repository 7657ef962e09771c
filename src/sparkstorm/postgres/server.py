"""How to reach a PostgreSQL: a value that travels to every process that talks to the server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from sparkstorm.components.functions import check_function
from sparkstorm.errors import ConfigError
from sparkstorm.postgres.address import checked, conninfo

__all__ = ["Postgres"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The address of a database, and how long to wait for its answers.

    Args:
        address: the DSN, as psycopg and libpq take it, or a function that returns such a text,
            called where a client connects. Shown without user and password.
        timeout_secs: a connection whose server does not answer for so long counts as lost.

    >>> Postgres(address="postgresql://me:geheim@host/shop")
    Postgres('host/shop')
    """

    address: str | Callable[[], str] = field(repr=False)
    timeout_secs: float = 8.0

    def __post_init__(self) -> None:
        check_function("dsn", self.address)
        if not callable(self.address):
            object.__setattr__(self, "address", checked(self.address, "PostgresQueueSpout"))
        if not self.timeout_secs > 0:
            raise ConfigError(f"timeout_secs is {self.timeout_secs}: give a number above 0")

    @property
    def dsn(self) -> str:
        """The text for libpq; it may hold a password."""
        if callable(self.address):
            return checked(self.address(), "PostgresQueueSpout")
        return self.address

    @property
    def place(self) -> str:
        """Host, port and database, without the password."""
        given = conninfo.conninfo_to_dict(self.dsn)
        host = given.get("host") or given.get("hostaddr") or "localhost"
        port = f":{given['port']}" if given.get("port") else ""
        return f"{host}{port}" + (f"/{given['dbname']}" if given.get("dbname") else "")

    def __repr__(self) -> str:
        return f"Postgres({'from a function' if callable(self.address) else self.place!r})"
