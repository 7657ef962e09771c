"""The RedisStreamBolt: adds one entry to a stream for each tuple."""

from collections.abc import Callable, Sequence
from typing import Any, final

from sparkstorm.components.bolt import Bolt
from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.formats import Format, Writer
from sparkstorm.queues.outgoing import BodyMaker, Selector
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.queues.redis.server import Redis, translated
from sparkstorm.tuples import Tuple

__all__ = ["RedisStreamBolt"]

_MOST_WAITING = 1_000
"""So many entries are added in a round trip."""


@final
class RedisStreamBolt(Bolt):
    """Adds an entry for each tuple (``XADD``); a tuple is acked by the server's answer.

    An entry that Redis refuses fails its tuple with Redis's reason. After a lost connection nobody
    knows whether the entries were added: their tuples fail and come again. So an entry may be
    added twice, and is never lost.

    Args:
        stream: the stream's key.
        url: see :class:`~sparkstorm.queues.redis.spout.RedisStreamSpout`.
        body: the field of the tuple that is written, or a function of the tuple.
        body_format: ``"bytes"``, ``"string"``, ``"json"``, or a function that returns bytes.
        field: the field of the entry that takes the body.
        maxlen: trims the stream to about so many entries (``MAXLEN ~``), also entries that no
            group has read. Unset: the stream is not trimmed.
        most_bytes: a larger body fails its tuple; Redis itself takes 512 MiB.
        timeout_secs: how long the server may take for an answer.

    Raises:
        ConfigError: an argument does not fit.
    """

    transient = ("_waiting", "_client")

    def __init__(
        self,
        stream: str,
        *,
        url: str | Callable[[], str],
        body: Selector = "body",
        body_format: Format | Writer = "string",
        field: str = "body",
        maxlen: int | None = None,
        most_bytes: int = 2**29,
        timeout_secs: float = 8.0,
    ) -> None:
        if not stream:
            raise ConfigError("the stream has no name")
        if maxlen is not None and maxlen < 1:
            raise ConfigError(f"maxlen is {maxlen}: give a number from 1 up")
        self._server = Redis(url=url, timeout_secs=timeout_secs)
        self._bodies = BodyMaker(body, body_format, most_bytes)
        self._stream = stream
        self._field = field
        self._trim = () if maxlen is None else ("MAXLEN", "~", maxlen)

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Start without a connection: the first entries make it."""
        self._client: Any = self._server.client()
        self._waiting: list[tuple[Tuple, bytes]] = []

    def execute(self, tup: Tuple) -> None:
        """Keep an entry until there are enough for a round trip."""
        if tup.is_tick:
            self.collector.ack(tup)
            return
        self._waiting.append((tup, self._bodies.body(tup)))
        if len(self._waiting) >= _MOST_WAITING:
            self._add()

    def finish_batch(self) -> None:
        """Add the rest."""
        self._add()

    def cleanup(self) -> None:
        """Close the connection."""
        self._client.close()

    def _add(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            answers = self._answers([body for _, body in waiting])
        except (QueueLostError, EnvironmentFault) as error:
            answers = [error] * len(waiting)
        for (tup, _), answer in zip(waiting, answers, strict=True):
            if isinstance(answer, Exception):
                self.collector.fail(tup, f"no entry in stream {self._stream!r}: {answer}")
            else:
                self.collector.ack(tup)

    def _answers(self, bodies: Sequence[bytes]) -> list[Any]:
        """Add entries; return for each its id, or the server's error."""
        with translated(self._server.place):
            pipeline = self._client.pipeline(transaction=False)
            for body in bodies:
                pipeline.execute_command("XADD", self._stream, *self._trim, "*", self._field, body)
            found: list[Any] = pipeline.execute(raise_on_error=False)
            return found

    def __repr__(self) -> str:
        return f"RedisStreamBolt({self._stream!r})"
