"""One task's connections to a queue on Kestrel servers."""

import itertools
import select
import time
from collections.abc import Collection, Sequence
from typing import final

from sparkstorm.queues.kestrel.identities import Identities, ItemName
from sparkstorm.queues.kestrel.link import Link
from sparkstorm.queues.queue import Delivery, Lease, QueueLostError

__all__ = ["KestrelQueue"]

_WAIT_MS = 500
"""How long a server waits for an item before it answers that there is none."""

_MOST_AT_ONCE = 64
"""The most items that are asked of a server at once."""


@final
class KestrelQueue:
    """Reads items reliably; each open item has a connection of its own.

    The protocol allows one open item for each connection and queue. So there are as many
    connections as items under way. A loss of any connection drops all: the servers then hand out
    the items anew.

    Args:
        queue: the queue's name.
        servers: the addresses, ``host:port``.
        timeout_secs: a server that does not answer for so long counts as lost. While others serve,
            the pause before the next try is as long, since a try may hold them up.
    """

    def __init__(self, queue: str, servers: Sequence[str], timeout_secs: float = 5.0) -> None:
        self._queue = queue
        self._timeout_secs = timeout_secs
        self._servers = list(servers)
        self._identities = Identities()
        self._idle: dict[str, list[Link]] = {}
        self._asked: set[Link] = set()
        self._open: dict[Lease, tuple[Link, ItemName]] = {}
        self._in_doubt: set[Lease] = set()
        self._at_once: dict[str, int] = {}
        self._leases = itertools.count(1)
        self._rejoin_at = 0.0
        self._was_connected = False

    @property
    def name(self) -> str:
        """The queue and its servers."""
        return f"Kestrel queue {self._queue} at {', '.join(self._servers)}"

    @property
    def lease_secs(self) -> float | None:
        """None: an item is open as long as its connection."""
        return None

    @property
    def leases_survive(self) -> bool:
        """False: a lost connection makes its item ready."""
        return False

    def connect(self) -> None:
        """Connect to all servers; later on, to those that are there."""
        lost: list[QueueLostError] = []
        for server in self._servers:
            try:
                self._join(server)
            except QueueLostError as error:
                lost.append(error)
        if lost and (len(lost) == len(self._servers) or not self._was_connected):
            raise lost[0]
        self._was_connected = True
        self._rejoin_at = time.monotonic() + self._timeout_secs

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Ask the servers for items, and return those that came in time."""
        self._rejoin()
        if limit:
            self._ask(limit)
        deliveries = [one for link in self._answered(wait_secs) for one in self._opened(link)]
        if not limit:  # a pause began meanwhile
            self.give_back([one.lease for one in deliveries])
            return []
        return deliveries

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Nothing: open items have no time limit."""
        return []

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Close items: the servers delete them."""
        self._in_doubt.update(leases)
        self._end(leases, "close")
        self._in_doubt.difference_update(leases)
        return []

    def give_back(self, leases: Collection[Lease]) -> None:
        """Abort items: they are the first to be handed out again.

        Questions under way are answered first: else they would get the very items that go back.
        """
        late: list[Lease] = []
        while self._asked:
            late += [one.lease for link in self._answered(1.0) for one in self._opened(link)]
        # The newest first, one by one: each goes to the front, so the oldest is first in the end.
        for lease in [*leases, *late][::-1]:
            self._end([lease], "abort")

    def close(self) -> None:
        """Close all connections; items whose deletion is in doubt are not known again."""
        for lease, (link, item) in self._open.items():
            link.close()
            if lease not in self._in_doubt:
                self._identities.lose(item)
        for link in itertools.chain(self._asked, *self._idle.values()):
            link.close()
        self._idle, self._asked, self._open = {}, set(), {}
        self._in_doubt.clear()

    # --- servers ---------------------------------------------------------------------------------

    def _join(self, server: str) -> None:
        link = Link(server, self._timeout_secs)
        link.check()
        self._identities.regain(server, time.monotonic())
        self._idle[server] = [link]
        self._at_once[server] = 1

    def _rejoin(self) -> None:
        """Try the servers that are away, now and then."""
        if not self._idle:
            raise QueueLostError("the connections are closed")
        away = [server for server in self._servers if server not in self._idle]
        if not away or time.monotonic() < self._rejoin_at:
            return
        self._rejoin_at = time.monotonic() + self._timeout_secs
        for server in away:
            try:
                self._join(server)
            except QueueLostError:
                continue

    # --- items -----------------------------------------------------------------------------------

    def _ask(self, limit: int) -> None:
        """Ask for more items at once of servers that have many, and for one of the others."""
        left = limit - len(self._asked)
        for server in self._idle:
            asked = sum(link.server == server for link in self._asked)
            wanted = min(self._at_once[server] - asked, left) if not asked else 0
            for _ in range(wanted):
                idle = self._idle[server]
                link = idle.pop() if idle else Link(server, self._timeout_secs)
                self._asked.add(link)
                # Several at once do not wait: the last of them would hold up the first.
                waits = wanted == 1
                key = f"{self._queue}/t={_WAIT_MS}/open" if waits else f"{self._queue}/open"
                link.get(key, _WAIT_MS / 1000 if waits else 0.0)
            left -= max(wanted, 0)

    def _answered(self, wait_secs: float) -> list[Link]:
        """Return the connections whose answer is whole; wait for a first."""
        if not self._asked:
            return []
        poll = select.poll()
        by_number = {link.fileno(): link for link in self._asked}
        for number in by_number:
            poll.register(number, select.POLLIN)
        ready = [by_number[number] for number, _ in poll.poll(wait_secs * 1000)]
        whole = [link for link in ready if link.read()]
        for link in self._asked.difference(whole):
            if link.overdue():
                raise link.late()
        return whole

    def _opened(self, link: Link) -> list[Delivery]:
        self._asked.discard(link)
        body = link.answer()
        if body is None:
            self._idle[link.server].append(link)
            self._at_once[link.server] = 1
            return []
        self._at_once[link.server] = min(self._at_once[link.server] * 2, _MOST_AT_ONCE)
        lease = next(self._leases)
        item = self._identities.name(link.server, body, time.monotonic())
        self._open[lease] = link, item
        attributes = {"server": link.server}
        return [Delivery(message_id=item, lease=lease, body=body, attributes=attributes)]

    def _end(self, leases: Collection[Lease], how: str) -> None:
        """Send all commands, then hear all answers."""
        links = [self._open[lease][0] for lease in leases]
        for link in links:
            link.get(f"{self._queue}/{how}")
        for lease, link in zip(leases, links, strict=True):
            link.end()
            del self._open[lease]
            self._idle[link.server].append(link)
