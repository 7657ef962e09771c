"""How to reach a RabbitMQ: a value that travels to every process that talks to the server."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final
from urllib.parse import unquote, urlsplit

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.texts.credentials import Secret, masked, untold

try:
    import pika
    from pika import exceptions
except ImportError as error:
    raise EnvironmentFault(
        "RabbitMQ needs the package pika: pip install 'sparkstorm[rabbitmq]'"
    ) from error

__all__ = ["Broker", "Urls", "error_of", "translated"]

Urls: TypeAlias = str | Sequence[str] | Callable[[], str | Sequence[str]]
"""A URL, the URLs of several nodes, or a function that returns them where a client connects."""

logging.getLogger("pika").setLevel(logging.CRITICAL)  # our own texts say what is wrong, once

_ACCESS_REFUSED, _NOT_FOUND, _NOT_ALLOWED = 403, 404, 530
_PROBABLE = exceptions.ProbableAuthenticationError | exceptions.ProbableAccessDeniedError
_BY_BROKER = exceptions.ChannelClosedByBroker | exceptions.ConnectionClosedByBroker
_NODE_DOWN = "down or inaccessible"
"""RabbitMQ's words for a queue whose node is away; the code is that of a missing queue."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The address of a RabbitMQ, and how its clients are to talk to the server.

    Args:
        url: ``amqp://user:password@host:port/vhost``, or ``amqps://`` for TLS, whose settings pika
            reads from the query (``?ssl_options={...}``). Several URLs are the nodes of one
            cluster: a client tries them in turn. Shown without user and password. A function is
            called where a client connects; then no password travels with the topology.
        heartbeat_secs: a connection that is silent for so long counts as lost.
        timeout_secs: how long connecting may take.

    >>> Broker(url="amqp://me:geheim@host/orders")
    Broker('host:5672/orders')
    """

    url: Urls = field(repr=False)
    heartbeat_secs: int = 10
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        if not callable(self.url):
            secret = _checked(self.url)
            object.__setattr__(self, "url", secret)
        if self.heartbeat_secs < 1:
            raise ConfigError(f"heartbeat_secs is {self.heartbeat_secs}: give a number from 1 up")

    @property
    def place(self) -> str:
        """Hosts, ports and the virtual host, without the password."""
        return ", ".join(map(_place, self._urls()))

    @property
    def identity(self) -> str:
        """Return an opaque name for these settings, as a key of caches; it holds no secret."""
        text = repr([[str(url) for url in self._urls()], self.heartbeat_secs, self.timeout_secs])
        return hashlib.sha256(text.encode()).hexdigest()

    def parameters(self, name: str) -> list[Any]:
        """Return pika's parameters for each node; ``name`` shows in RabbitMQ's list of clients."""
        return [self._parameters(url, name) for url in self._urls()]

    def _parameters(self, url: str, name: str) -> Any:
        found = pika.URLParameters(url)
        found.heartbeat = self.heartbeat_secs
        found.socket_timeout = found.stack_timeout = self.timeout_secs
        found.blocked_connection_timeout = None
        found.connection_attempts = 1
        found.client_properties = {"connection_name": name}
        return found

    def _urls(self) -> tuple[str, ...]:
        return _checked(self.url()) if callable(self.url) else tuple(self.url)

    def __repr__(self) -> str:
        shown = "from a function" if callable(self.url) else self.place
        return f"Broker({shown!r})"


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise pika's errors as ours; see :func:`error_of`."""
    try:
        yield
    except (exceptions.AMQPError, OSError) as error:
        raise error_of(error, place) from untold(error)


def error_of(error: BaseException | None, place: str) -> QueueLostError | EnvironmentFault:
    """Return pika's error as ours; None stands for a server that does not answer.

    Returns:
        An EnvironmentFault where no later try helps: credentials, rights, a missing queue. Else a
        QueueLostError.
    """
    if error is None:
        return QueueLostError(f"RabbitMQ at {place} does not answer")
    text = f"RabbitMQ at {place}: {_words(error)}"
    return EnvironmentFault(text) if _is_hopeless(error) else QueueLostError(text)


def _is_hopeless(error: BaseException) -> bool:
    if isinstance(error, exceptions.AuthenticationError):
        return True
    if isinstance(error, _PROBABLE):
        # A server that goes while a client logs in looks the same to pika; a refusal has a code.
        return any(f"ByBroker: ({code})" in str(error) for code in (_ACCESS_REFUSED, _NOT_ALLOWED))
    if not isinstance(error, _BY_BROKER):
        return False
    gone = error.reply_code == _NOT_FOUND and _NODE_DOWN not in error.reply_text
    return gone or error.reply_code in (_ACCESS_REFUSED, _NOT_ALLOWED)


def _words(error: BaseException) -> str:
    """Return an error in words."""
    if isinstance(error, _BY_BROKER):
        return masked(f"{error.reply_text} ({error.reply_code})")
    cause = _cause(error)
    return masked(str(cause) or repr(cause))


def _cause(error: BaseException) -> BaseException:
    """Return the error that pika has wrapped, once for each of its own steps."""
    inner = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args]
    wrapped = next((one for one in inner if isinstance(one, BaseException)), None)
    return error if wrapped is None else _cause(wrapped)


def _checked(given: str | Sequence[str]) -> tuple[Secret, ...]:
    """Return the URLs, if pika reads them correctly; errors do not quote them."""
    urls = tuple(Secret(url) for url in ([given] if isinstance(given, str) else given))
    if urls and all(map(_is_readable, urls)):
        return urls
    raise ConfigError(
        "the URL of RabbitMQ (not shown here, since it may hold a password) cannot be read: write "
        "amqp://user:password@host:port/vhost, with special characters as %XX"
    )


def _is_readable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        pika.URLParameters(url)
    except (ValueError, TypeError):
        return False
    # an @ or / in a password makes a part of the password the host
    plain = url.count("@") < 2 and "@" not in parts.path
    return parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and plain


def _place(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or (5671 if parts.scheme == "amqps" else 5672)
    vhost = unquote(parts.path).removeprefix("/").strip("/")
    return f"{parts.hostname}:{port}" + (f"/{vhost}" if vhost else "")
