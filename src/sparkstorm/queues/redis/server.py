"""How to reach a Redis: a value that travels to every process that talks to the server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final
from urllib.parse import urlsplit

from sparkstorm.components.functions import check_function
from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.texts.credentials import Secret, untold
from sparkstorm.texts.user_errors import words_of

try:
    import redis
    from redis import exceptions
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    raise EnvironmentFault(
        "Redis needs the package redis: pip install 'sparkstorm[redis]'"
    ) from error

__all__ = ["Redis", "redis_errors", "translated"]

redis_errors = exceptions
"""The errors of redis-py."""

_LOGIN = "check the user and the password in the URL"
_REFUSED: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.NoPermissionError, "give the user this right by ACL SETUSER"),
    (exceptions.AuthenticationError, _LOGIN),
    (exceptions.MovedError, "this node of a Redis Cluster does not hold the key: give its node"),
)
_HOPELESS = {
    "WRONGTYPE": "the key is no stream",
    "invalid password": _LOGIN,
    "unknown command": "Redis 6.2 or newer is needed",
    "DB index is out of range": "check the database's number in the URL",
    "Invalid stream ID": "start is '0', '$' or an entry's id",
}
"""Words of errors that no later try mends, and the mend."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Redis:
    """The address of a Redis, and how long to wait for its answers.

    Args:
        url: ``redis://user:password@host:port/database``, ``rediss://`` for TLS, or
            ``unix:///path``; redis-py reads further options from the query. Shown without user and
            password. A function is called where a client connects; then no password travels with
            the topology.
        timeout_secs: a connection whose server does not answer for so long counts as lost.

    >>> Redis(url="redis://:geheim@host/1")
    Redis('host:6379/1')
    """

    url: str | Callable[[], str] = field(repr=False)
    timeout_secs: float = 8.0

    def __post_init__(self) -> None:
        check_function("url", self.url)
        if not callable(self.url):
            object.__setattr__(self, "url", _checked(self.url))
        if not self.timeout_secs > 0:
            raise ConfigError(f"timeout_secs is {self.timeout_secs}: give a number above 0")

    @property
    def place(self) -> str:
        """Host, port and database, without the password."""
        parts = urlsplit(self._url)
        database = parts.path.strip("/")
        if parts.scheme == "unix":
            return parts.path
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}" + (
            f"/{database}" if database else ""
        )

    def client(self) -> "redis.Redis":
        """Return a client; its first command connects."""
        made = redis.Redis.from_url(
            self._url,
            socket_timeout=self.timeout_secs,
            socket_connect_timeout=self.timeout_secs,
            socket_keepalive=True,
            # The keeper tries again, with backoff; a client that does would add an entry twice.
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        made.response_callbacks.clear()  # plain answers, the same with each version of redis-py
        return made

    @property
    def _url(self) -> str:
        return _checked(self.url()) if callable(self.url) else self.url

    def __repr__(self) -> str:
        return f"Redis({'from a function' if callable(self.url) else self.place!r})"


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise redis-py's errors as ours.

    Raises:
        EnvironmentFault: no later try helps: credentials, rights, a key of another type.
        QueueLostError: any other error of the server or the connection.
    """
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        raise _error_of(error, place) from untold(error)


def _error_of(error: BaseException, place: str) -> EnvironmentFault | QueueLostError:
    said = words_of(error)
    text = f"Redis at {place}: {said}"
    mends = [mend for kind, mend in _REFUSED if isinstance(error, kind)]
    if isinstance(error, exceptions.ResponseError):
        mends += [mend for words, mend in _HOPELESS.items() if words in said]
    return EnvironmentFault(f"{text} ({mends[0]})") if mends else QueueLostError(text)


def _checked(url: str) -> Secret:
    """Return the URL, if redis-py reads it correctly; errors do not quote the URL."""
    secret = Secret(url)
    if not _is_readable(url):
        raise ConfigError(
            "the URL of Redis (not shown here, since it may hold a password) cannot be read: write "
            "redis://user:password@host:port/database, with special characters as %XX"
        )
    return secret


def _is_readable(url: str) -> bool:
    try:
        parts, database = urlsplit(url), urlsplit(url).path.strip("/")
        redis.ConnectionPool.from_url(url).make_connection()
    except (ValueError, TypeError, exceptions.RedisError):
        return False
    if parts.scheme == "unix":
        return bool(parts.path)
    # An @ or / in a password makes a part of the password the host, or the database.
    return bool(parts.hostname) and url.count("@") < 2 and (not database or database.isdecimal())
