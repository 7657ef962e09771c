"""The QueueSpout: a base for spouts of systems that hand out messages by a lease."""

from collections.abc import Hashable, Sequence
from typing import Any

from sparkstorm.clock import SystemClock
from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.queues.client_thread import ClientThread
from sparkstorm.queues.counts import KeeperCounts
from sparkstorm.queues.decoding import Decoder, decoder_of, outputs_of
from sparkstorm.queues.groups import Groups
from sparkstorm.queues.keeper import LeaseKeeper
from sparkstorm.queues.queue import Delivery, Queue
from sparkstorm.spouts.replaying import ReplayingSpout
from sparkstorm.texts.user_errors import USER_ERRORS, message_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["QueueSpout"]

_CONNECT_SECS = 10.0
_SILENT_SECS = 60.0
"""After so many seconds without an answer of the queue the spout says so."""


class QueueSpout(ReplayingSpout):
    """Emits the messages of a queue; a message stays pending on the server until its ack.

    Subclasses implement :meth:`make_queue`. A thread beside the spout's own keeps the leases
    (:class:`~sparkstorm.queues.keeper.LeaseKeeper`), however long bolts take.

    * An ack deletes the message.
    * A failed message stays leased and is emitted again by the retry policy.
    * A message that is given up, or cannot be decoded, becomes a dead letter; then it is deleted.
    * At a shutdown the queue gets back the messages that are not acked; after a crash they come
      back by themselves.
    * One message of a group is under way at a time. A failed message holds back its group until it
      is acked or given up.

    Args:
        fields: the declared stream; a single name gets the format's type.
        decode: ``"string"``, ``"bytes"``, ``"json"``, a function of the body's bytes, or
            :class:`~sparkstorm.queues.decoding.WithDelivery`. A tuple as result is a row of
            values.
        max_pending: the most messages that a task holds at once, waiting ones included. Unset:
            ``max_spout_pending``, else ``default_pending``.
        ends_after_idle_secs: the spout ends once the queue has handed out nothing for so long.
            Unset: it never ends.

    Raises:
        ConfigError: an argument does not fit.
    """

    default_pending: int = 1000
    """The most messages that a task holds at once, where neither argument nor setting says.

    A topology acks by the batch. So a task processes no more messages in a batch than it may hold.
    """

    max_waiting: int | None = None
    """The most messages that a task takes before the topology wants them; None: ``limit``.

    Set it where the queue hands out no more than ``take`` asks for: then ``default_pending`` may be
    high, and a slow topology still leaves messages to others.
    """

    limit: int = default_pending
    """The most messages that this task holds at once; set before :meth:`make_queue` is called."""

    _keeper: LeaseKeeper | None = None

    def __init__(
        self,
        *,
        fields: str = "body",
        decode: Decoder = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ConfigError(f"max_pending is {max_pending}: give a number from 1 up")
        decoder_of(decode)
        self.outputs = outputs_of(fields, decode)
        self._decoder = decode
        self._max_pending = max_pending
        self._ends_after = ends_after_idle_secs

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own, unconnected queue; called once, by ``open``.

        Raises:
            ConfigError: an argument of the spout does not fit.
        """
        raise NotImplementedError

    def note_given_up(self, msg_id: Hashable) -> None:
        """Called when a message has become a dead letter, before the queue deletes the message."""

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Connect to the queue, within ten seconds, and begin to take messages."""
        super().open(config, context, collector)
        self.limit = self._max_pending or config.max_spout_pending or self.default_pending
        queue = self.make_queue(config, context)
        self._queue_name = queue.name
        self._decode = decoder_of(self._decoder)
        self._groups = Groups()
        self._idle_since = self._clock.monotonic()
        self._said_silent = False
        # The server's leases run by the machine's time, whatever clock a test has given.
        self._keeper = LeaseKeeper(queue, SystemClock(), self.limit, self.max_waiting)
        self._client = ClientThread(self._keeper, f"{context.component}-{context.task}")
        self._client.start_connected(_CONNECT_SECS)

    def close(self) -> None:
        """Give back the messages that are not acked, and close the connection."""
        if self._keeper is not None:
            self._client.stop()

    def activate(self) -> None:
        """Take messages again."""
        self._kept_by.pause(False)

    def deactivate(self) -> None:
        """Take no further messages; the leases of those under way are kept."""
        self._kept_by.pause(True)

    def next_tuple(self) -> None:
        """Emit a message: one that is due for a retry, else a new one."""
        self._tell()
        super().next_tuple()

    def next_message(self) -> tuple[Hashable, Sequence[Any]] | None:
        """Return the next message whose group is free."""
        while (delivery := self._next_delivery()) is not None:
            self._idle_since = self._clock.monotonic()
            try:
                return delivery.message_id, self._decode(delivery)
            except USER_ERRORS as error:
                self._refuse(delivery, error)
        return None

    def ack(self, msg_id: Hashable) -> None:
        """Let the queue delete the message."""
        super().ack(msg_id)
        self._end(msg_id)
        self._tell()

    def fail(self, msg_id: Hashable, failure: Failure) -> None:
        """Keep the message leased until its retry, or give it up: the queue then deletes it."""
        super().fail(msg_id, failure)
        if msg_id not in self._kept:
            self.note_given_up(msg_id)
            self._end(msg_id)

    def exhausted(self) -> bool:
        """Return whether the queue was idle for ``ends_after_idle_secs``, and all is settled."""
        keeper = self._keeper
        if self._ends_after is None or keeper is None or self.kept or not keeper.connected:
            return False
        idle_secs = self._clock.monotonic() - self._idle_since
        left = keeper.waiting or keeper.unsettled or len(self._groups)
        return idle_secs >= self._ends_after and not left

    @property
    def counts(self) -> KeeperCounts:
        """The counts of this task's leases."""
        return self._kept_by.counts

    @property
    def _kept_by(self) -> LeaseKeeper:
        assert self._keeper is not None, "open comes first"  # noqa: S101
        return self._keeper

    def _next_delivery(self) -> Delivery | None:
        delivery = self._groups.next_free()
        while delivery is None:
            delivery = self._kept_by.next_delivery()
            if delivery is None:
                return None
            if not self._groups.admit(delivery):
                delivery = None
        return delivery

    def _refuse(self, delivery: Delivery, error: BaseException) -> None:
        """Make a message that cannot be decoded a dead letter."""
        failure = Failure(
            reason=Reason.ERROR,
            message=f"the message cannot be decoded: {message_of(error)}",
            final=True,
        )
        source = {
            "queue": self._queue_name,
            "bytes": delivery.body,
            "deliveries": delivery.deliveries,
        }
        self.collector.give_up(delivery.message_id, failure, source=source)
        self.note_given_up(delivery.message_id)
        self._end(delivery.message_id)

    def _end(self, msg_id: Hashable) -> None:
        self._kept_by.settle(msg_id)
        self._groups.done(msg_id)
        self._client.wake()

    def _tell(self) -> None:
        """Raise the client thread's error, or show its reports."""
        if self._client.fault is not None:
            raise self._client.fault
        keeper = self._kept_by
        while keeper.reports:
            self.collector.report_error(keeper.reports.popleft())
        silent = keeper.connected and keeper.silent_secs > _SILENT_SECS
        if silent and not self._said_silent:
            self.collector.report_error(
                f"{self._queue_name} has not answered for {keeper.silent_secs:.0f} s, although the "
                f"connection is open: the client waits"
            )
        self._said_silent = silent
