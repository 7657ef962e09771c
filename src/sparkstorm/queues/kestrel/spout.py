"""The KestrelSpout: items of a queue on Kestrel servers."""

from collections.abc import Sequence
from typing import final

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.queues.decoding import Decoder
from sparkstorm.queues.kestrel.queue import KestrelQueue
from sparkstorm.queues.queue import Queue
from sparkstorm.queues.spout import QueueSpout

__all__ = ["KestrelSpout"]


@final
class KestrelSpout(QueueSpout):
    """Emits the items of a Kestrel queue; an item stays open on its server until its ack.

    The protocol allows one open item for each connection. So a task has as many connections as
    items under way, at most ``max_pending``. Each task reads from all servers.

    The memcache protocol gives an item no name. The message id is the server, a digest of the
    content, and a number. Within a minute after a lost connection items are known again by their
    content.

    Args:
        queue: the queue's name.
        servers: the addresses, ``host:port``.
        timeout_secs: a server that does not answer for so long counts as lost.
        max_pending: the most items that a task holds open. Unset: 500, since each needs a socket.
        fields: the declared stream.
        decode: how a body becomes values; see :class:`~sparkstorm.queues.spout.QueueSpout`.
        ends_after_idle_secs: the spout ends once the queue was idle for so long.

    Raises:
        ConfigError: an argument does not fit.
    """

    default_pending = 500

    def __init__(
        self,
        queue: str,
        servers: Sequence[str] = ("127.0.0.1:22133",),
        *,
        timeout_secs: float = 5.0,
        max_pending: int | None = None,
        fields: str = "body",
        decode: Decoder = "string",
        ends_after_idle_secs: float | None = None,
    ) -> None:
        super().__init__(
            fields=fields,
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )
        self._servers = [servers] if isinstance(servers, str) else list(servers)
        for server in self._servers:
            host, _, port = server.rpartition(":")
            if not host or not port.isdigit():
                raise ConfigError(f"{server!r} is no address of a Kestrel: give host:port")
        if not self._servers:
            raise ConfigError("KestrelSpout has no servers: give one at least, as host:port")
        if not queue or set(queue) & set(" /\r\n\t"):
            raise ConfigError(f"{queue!r} is no name of a Kestrel queue: no spaces, no slashes")
        if not timeout_secs > 0:
            raise ConfigError(f"timeout_secs is {timeout_secs}: give a number above 0")
        self._queue = queue
        self._timeout_secs = timeout_secs

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own connections."""
        return KestrelQueue(self._queue, self._servers, self._timeout_secs)
