"""The RedisStreamSpout: emits the entries of a stream, as a member of a consumer group."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.queues.decoding import Decoder, WithDelivery, decoder_of
from sparkstorm.queues.queue import Delivery, Queue
from sparkstorm.queues.redis.queue import RedisStreamQueue
from sparkstorm.queues.redis.server import Redis
from sparkstorm.queues.spout import QueueSpout

__all__ = ["RedisStreamSpout"]


class RedisStreamSpout(QueueSpout):
    """Emits the entries of a Redis stream; an entry stays pending in its group until its ack.

    Each task is one consumer of the group, with the same name after a restart. Entries of a task
    that has died go to the others after ``lease_secs``. Needs Redis 6.2 or newer.

    Args:
        stream: the stream's key.
        url: ``redis://user:password@host:port/database``, ``rediss://`` for TLS, or a function that
            returns the URL, called where the connection is made. Never shown with its password.
        group: the consumer group.
        field: the field of an entry that is decoded. An entry without the field becomes a dead
            letter. ``WithDelivery`` sees all fields in ``delivery.attributes["fields"]``.
        start: makes a missing group: ``"0"`` reads all entries of the stream, ``"$"`` entries to
            come. Unset: a missing group is an error.
        lease_secs: an entry whose consumer is silent for so long goes to another.
        delete: whether acked entries are deleted from the stream. Other groups of the stream do
            not get them.
        timeout_secs: a connection whose server does not answer for so long counts as lost.
        options: those of :class:`~sparkstorm.queues.spout.QueueSpout`.

    >>> RedisStreamSpout("orders", url="redis://localhost", group="enrich", decode="json")
    RedisStreamSpout('orders', group='enrich')
    """

    default_pending = 50_000
    max_waiting = 2000

    _queue: RedisStreamQueue | None = None

    def __init__(
        self,
        stream: str,
        *,
        url: str | Callable[[], str],
        group: str,
        field: str = "body",
        start: str | None = None,
        lease_secs: float = 60.0,
        delete: bool = False,
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
        if not isinstance(decode, WithDelivery):
            self._decoder = WithDelivery(_FieldReader(field, decode))
        self._server = Redis(url=url, timeout_secs=timeout_secs)
        self._stream = stream
        self._group = group
        self._lease_secs = lease_secs
        self._options: dict[str, Any] = {"field": field, "start": start, "delete": delete}
        self._queue_for("-")  # finds mistakes where the spout is made

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own consumer."""
        consumer = f"{context.topology}/{context.component}/{context.task_index}"
        self._queue = self._queue_for(consumer)
        return self._queue

    def next_tuple(self) -> None:
        """Emit an entry; tell of trimmed ones."""
        queue = self._queue
        while queue is not None and queue.reports:
            self.collector.report_error(queue.reports.popleft())
        super().next_tuple()

    @property
    def trimmed(self) -> int:
        """How many entries were trimmed, or deleted, before this task acked them."""
        return 0 if self._queue is None else self._queue.trimmed

    def _queue_for(self, consumer: str) -> RedisStreamQueue:
        return RedisStreamQueue(
            self._server,
            self._stream,
            self._group,
            consumer,
            lease_secs=self._lease_secs,
            **self._options,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stream!r}, group={self._group!r})"


@final
class _FieldReader:
    """Decodes one field of an entry."""

    def __init__(self, field: str, decode: Decoder) -> None:
        self._field = field
        self._decode = decode

    def __call__(self, delivery: Delivery) -> Sequence[Any]:
        if self._field not in delivery.attributes["fields"]:
            there = ", ".join(map(repr, delivery.attributes["fields"]))
            raise ValueError(f"the entry has no field {self._field!r}, but {there}")
        return self._read(delivery)

    @cached_property
    def _read(self) -> Callable[[Delivery], Sequence[Any]]:
        """Made in the task: a function made here would have to be picklable."""
        return decoder_of(self._decode)
