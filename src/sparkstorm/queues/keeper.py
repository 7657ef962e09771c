"""The lease keeper: takes messages, extends their leases while they are pending, settles them.

A keeper stands between one task of a spout and one :class:`~sparkstorm.queues.queue.Queue`. The
task's thread calls ``next_delivery`` and ``settle``. A client thread calls ``step`` again and
again, and ``close`` at the end; only that thread touches the queue. The keeper itself has no
thread and reads no clock but the given one, so a test can play any order of events.

Three rules hold at any time:

* At most ``max_pending`` leases are held. Messages that are settled and not yet deleted count.
  At most ``max_waiting`` of them are of messages that the task has not seen yet.
* A message that this task has under way is not handed to the task a second time. Its redelivery
  brings a new lease, and nothing else.
* A message that the task has settled is not handed to the task again either. Its redelivery is
  deleted.
"""

import itertools
import threading
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from sparkstorm.clock import Clock
from sparkstorm.queues.counts import KeeperCounts
from sparkstorm.queues.queue import Delivery, Lease, Queue, QueueLostError
from sparkstorm.texts.user_errors import words_of

__all__ = ["LeaseKeeper"]

_EXTENSIONS = 3
"""A lease is extended so many times in its own length, so that a late or lost call does no harm."""

_FIRST_BACKOFF_SECS = 0.1
_LONGEST_BACKOFF_SECS = 5.0

_RETRY_SECS = 1.0
"""The pause before a settlement that the queue refused is tried again."""

_MOST_AT_ONCE = 2000
"""So many leases are named in a call: longer calls hold up others, on the server as well."""

_MOST_REMEMBERED = 100_000
"""So many settled messages without a lease are remembered: their redelivery is deleted."""


class _NoLease(Enum):
    NO_LEASE = "no lease"


_NO_LEASE: Final = _NoLease.NO_LEASE
"""The lease of a message after its lease has ended, or was lost with the connection."""


@final
@dataclass(slots=True)
class _Held:
    """A message that is under way, or settled and not yet deleted."""

    lease: Lease
    until: float
    settled: bool = False

    @property
    def leased(self) -> bool:
        return self.lease is not _NO_LEASE


@final
class LeaseKeeper:
    """Keeps the leases of one task's messages.

    Args:
        queue: the task's own connection.
        clock: the source of time.
        max_pending: the most leases to hold at once.
        max_waiting: the most messages to hold that the task has not seen yet; None: no limit of
            their own. A queue that hands out more than ``take`` asks for needs None.

    Attributes:
        reports: texts for people, on connections and leases; whoever shows a text takes it out.
    """

    def __init__(
        self, queue: Queue, clock: Clock, max_pending: int, max_waiting: int | None = None
    ) -> None:
        self.reports: deque[str] = deque(maxlen=100)
        self._queue = queue
        self._clock = clock
        self._max_pending = max_pending
        self._max_waiting = max_pending if max_waiting is None else max_waiting
        self._held: dict[Hashable, _Held] = {}
        self._to_settle: set[Hashable] = set()
        self._remembered: dict[Hashable, None] = {}
        self._leased = 0
        self._lock = threading.Lock()  # of the messages that the task has not seen yet
        self._arrived: deque[Delivery] = deque()
        self._settlements: deque[Hashable] = deque()
        self._taking = True
        self._connected = False
        self._connect_at = 0.0
        self._failures = 0
        self._away_since: float | None = None
        self._answered_at = clock.monotonic()
        self._extend_at = 0.0
        self._settle_at = 0.0
        self._taken = self._redelivered = self._settled = self._ended = self._connects = 0

    # --- for the task's thread -------------------------------------------------------------------

    def next_delivery(self) -> Delivery | None:
        """Return the next message for the task, or None if there is none now."""
        with self._lock:
            return self._arrived.popleft() if self._arrived else None

    def settle(self, message_id: Hashable) -> None:
        """Note that a message is done: the queue may delete it."""
        self._settlements.append(message_id)

    def pause(self, paused: bool) -> None:
        """Take no further messages, or take them again; leases are kept all the same."""
        self._taking = not paused

    @property
    def connected(self) -> bool:
        """Whether the queue answered the last call."""
        return self._connected

    @property
    def silent_secs(self) -> float:
        """How long the last answer of the queue is ago: it grows while a call hangs."""
        return self._clock.monotonic() - self._answered_at

    @property
    def waiting(self) -> int:
        """How many messages the task has not seen yet."""
        return len(self._arrived)

    @property
    def unsettled(self) -> int:
        """How many messages wait for their deletion."""
        return len(self._settlements) + len(self._to_settle)

    @property
    def counts(self) -> KeeperCounts:
        """The counts so far."""
        return KeeperCounts(
            leased=self._leased,
            taken=self._taken,
            redelivered=self._redelivered,
            settled=self._settled,
            ended=self._ended,
            reconnects=max(self._connects - 1, 0),
        )

    def __repr__(self) -> str:
        state = "connected" if self._connected else "not connected"
        return f"LeaseKeeper({self._queue.name}, {state}, {self._leased} leases)"

    # --- for the client thread -------------------------------------------------------------------

    def step(self, wait_secs: float = 0.0) -> bool:
        """Do what is due now, and take messages; return whether anything moved.

        1. Connect, if the connection is away and its backoff is over.
        2. Delete settled messages.
        3. Extend leases.
        4. Take messages, up to the limit.

        Args:
            wait_secs: how long to wait for a first message.

        Raises:
            EnvironmentFault: the queue cannot be used, and no later try helps.
        """
        self._note_settlements()
        try:
            if not (self._connected or self._connect()):
                return False
            settled = self._settle()
            self._extend()
            return bool(self._take(wait_secs) or settled)
        except QueueLostError as error:
            self._lose(error)
            return False

    def close(self) -> None:
        """Delete settled messages, give the others back, and close the connection."""
        self._taking = False
        self._note_settlements()
        try:
            if self._connected:
                self._settle_at = 0.0
                self._settle()
                self._queue.give_back([one.lease for one in self._held.values() if one.leased])
        except QueueLostError as error:
            self._lose(error)
        self._connected = False
        self._queue.close()

    # --- the connection --------------------------------------------------------------------------

    def _connect(self) -> bool:
        now = self._clock.monotonic()
        if now < self._connect_at:
            return False
        self._queue.connect()
        self._connected = True
        self._answered_at = now
        self._connects += 1
        self._extend_at = self._settle_at = 0.0
        if self._away_since is not None:
            self.reports.append(
                f"{self._queue.name} is back after {now - self._away_since:.1f} s: going on"
            )
        self._away_since = None
        return True

    def _lose(self, error: QueueLostError) -> None:
        """Close the connection, say so once, and let the next try wait."""
        now = self._clock.monotonic()
        self._connected = False
        self._queue.close()
        if self._away_since is None:
            self._away_since = now
            self.reports.append(f"{self._queue.name} is away, trying again: {words_of(error)}")
        wait = min(_FIRST_BACKOFF_SECS * 2.0 ** min(self._failures, 30), _LONGEST_BACKOFF_SECS)
        self._failures += 1
        self._connect_at = now + wait
        if not self._queue.leases_survive:
            self._drop_leases(set(self._held))

    def _answered(self) -> None:
        """Note that the connection carries calls: the next loss begins with a short backoff."""
        self._failures = 0
        self._answered_at = self._clock.monotonic()

    # --- settled messages ------------------------------------------------------------------------

    def _note_settlements(self) -> None:
        while self._settlements:
            message_id = self._settlements.popleft()
            held = self._held.get(message_id)
            if held is None or held.settled:
                continue
            held.settled = True
            if held.leased:
                self._to_settle.add(message_id)
            else:
                self._remember(message_id)

    def _settle(self) -> bool:
        now = self._clock.monotonic()
        if not self._to_settle or now < self._settle_at:
            return False
        leases = {self._held[one].lease: one for one in self._to_settle}
        refused = 0
        for piece in _pieces(leases):
            left = set(self._queue.settle(piece))
            self._answered()
            refused += len(left)
            for lease in piece:
                if lease not in left:
                    self._settled += 1
                    self._end(leases[lease], now)
        self._settle_at = now + _RETRY_SECS if refused else 0.0
        return refused < len(leases)

    def _end(self, message_id: Hashable, now: float) -> None:
        """Forget a deleted message; an ended lease may have deleted nothing, so keep it in mind."""
        if self._queue.lease_secs is None or self._held[message_id].until > now:
            self._forget(message_id)
        else:
            self._drop_lease(message_id)

    def _forget(self, message_id: Hashable) -> None:
        self._to_settle.discard(message_id)
        self._remembered.pop(message_id, None)
        if self._held.pop(message_id).leased:
            self._leased -= 1

    def _remember(self, message_id: Hashable) -> None:
        """Keep a settled message without a lease in mind, instead of the oldest such message."""
        self._remembered[message_id] = None
        if len(self._remembered) > _MOST_REMEMBERED:
            self._forget(next(iter(self._remembered)))

    # --- leases ----------------------------------------------------------------------------------

    def _extend(self) -> None:
        """Extend leases that have used up a third of their time."""
        secs, now = self._queue.lease_secs, self._clock.monotonic()
        if secs is None or now < self._extend_at:
            return
        # Not at each step: a look at all leases would cost more than the messages.
        self._extend_at = now + secs / _EXTENSIONS / 4
        soon = now + secs * (1 - 1 / _EXTENSIONS)
        due = {
            held.lease: message_id
            for message_id, held in self._held.items()
            if held.leased and held.until <= soon
        }
        ended: set[Lease] = set()
        for piece in _pieces(due):
            ended_now = set(self._queue.extend(piece))
            self._answered()
            for lease in piece:
                if lease not in ended_now:
                    self._held[due[lease]].until = now + secs
            ended |= ended_now
        if ended:
            self._note_ended({due[lease] for lease in ended})

    def _note_ended(self, message_ids: Collection[Hashable]) -> None:
        under_way = self._drop_leases(message_ids)
        self._ended += under_way
        if under_way:
            self.reports.append(
                f"{self._queue.name}: {under_way:,} leases ended while their messages were "
                f"under way, so others may have got these messages, too"
            )

    def _drop_leases(self, message_ids: Collection[Hashable]) -> int:
        """Go on without leases; return how many messages are under way all the same.

        A message that the task has not seen yet is forgotten: the queue will hand it out again.
        """
        with self._lock:
            unseen = {one.message_id for one in self._arrived} & set(message_ids)
            self._arrived = deque(one for one in self._arrived if one.message_id not in unseen)
        for message_id in unseen:
            self._forget(message_id)
        seen = [one for one in message_ids if one not in unseen]
        for message_id in seen:
            self._drop_lease(message_id)
        return sum(not self._held[one].settled for one in seen if one in self._held)

    def _drop_lease(self, message_id: Hashable) -> None:
        held = self._held[message_id]
        if held.leased:
            held.lease = _NO_LEASE
            self._leased -= 1
        if held.settled:
            self._to_settle.discard(message_id)
            self._remember(message_id)

    # --- deliveries ------------------------------------------------------------------------------

    def _take(self, wait_secs: float) -> bool:
        room = min(self._max_pending - self._leased, self._max_waiting - len(self._arrived))
        limit = max(room, 0) if self._taking else 0
        now = self._clock.monotonic()
        deliveries = self._queue.take(limit, wait_secs if limit else 0.0)
        self._answered()
        # Counted from before the call: the queue's own clock began somewhere within it.
        until = now + (self._queue.lease_secs or 0.0)
        self._taken += len(deliveries)
        new: list[Delivery] = []
        for delivery in deliveries:
            held = self._held.get(delivery.message_id)
            if held is None:
                self._held[delivery.message_id] = _Held(delivery.lease, until)
                new.append(delivery)
            else:
                self._come_again(held, delivery, until)
        self._leased += len(new)
        with self._lock:
            self._arrived.extend(new)
        return bool(deliveries)

    def _come_again(self, held: _Held, delivery: Delivery, until: float) -> None:
        """Take the new lease of a message that is under way, or settled."""
        self._redelivered += 1
        if not held.leased:
            self._leased += 1
        held.lease, held.until = delivery.lease, until
        if held.settled:
            self._remembered.pop(delivery.message_id, None)
            self._to_settle.add(delivery.message_id)
            self._settle_at = 0.0


def _pieces(leases: Iterable[Lease]) -> Iterator[list[Lease]]:
    """Cut leases into lists that are short enough for a call."""
    left = iter(leases)
    while piece := list(itertools.islice(left, _MOST_AT_ONCE)):
        yield piece
