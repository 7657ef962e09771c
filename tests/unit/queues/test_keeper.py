"""The lease keeper: what it says, and how it waits."""

from collections.abc import Collection
from typing import Any

from sparkstorm.queues import Lease
from sparkstorm.queues.keeper import LeaseKeeper
from sparkstorm.testing import ManualClock
from sparkstorm.testing.queues import MemoryQueue, MemoryQueueServer


class Watched:
    """A queue that notes how many leases each call names."""

    def __init__(self, queue: MemoryQueue, lengths: list[int]) -> None:
        self._queue = queue
        self._lengths = lengths

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        self._lengths.append(len(leases))
        return self._queue.extend(leases)

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        self._lengths.append(len(leases))
        return self._queue.settle(leases)


def test_a_queue_that_goes_away_is_reported_once_and_so_is_its_return() -> None:
    """People hear of the outage while it lasts, in one line."""
    clock, server = ManualClock(), MemoryQueueServer(lease_secs=30)
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    server.away = True
    for _ in range(60):
        keeper.step()
        clock.advance(1.0)
    assert [text.split(": ")[0] for text in keeper.reports] == [
        f"queue {server.name} is away, trying again"
    ]
    server.away = False
    for _ in range(10):
        keeper.step()
        clock.advance(1.0)
    assert keeper.reports[-1] == f"queue {server.name} is back after 60.0 s: going on"
    assert keeper.connected
    assert keeper.counts.reconnects == 1


def test_tries_to_connect_grow_rarer_but_never_rarer_than_five_seconds() -> None:
    """A server that comes back is found within seconds, however long it was away."""
    clock, server = ManualClock(), MemoryQueueServer(lease_secs=30)
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    server.away = True
    for _ in range(3600):
        keeper.step()
        clock.advance(1.0)
    server.away = False
    for _ in range(6):
        keeper.step()
        clock.advance(1.0)
    assert keeper.connected


def test_a_lease_is_extended_for_as_long_as_its_message_is_under_way() -> None:
    """Work of ten times the lease's length ends with one delivery."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=30, clock=clock)
    server.send(["a"])
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    delivery = keeper.next_delivery()
    assert delivery is not None
    for _ in range(300):
        clock.advance(1.0)
        keeper.step()
        assert server.pending == 1
    keeper.settle(delivery.message_id)
    keeper.step()
    assert (server.ready, server.pending, server.delivered) == (0, 0, [1])


def test_a_lease_that_ended_is_counted_and_reported() -> None:
    """A client thread that did not run for longer than a lease says what may have happened."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=30, clock=clock)
    server.send(["a"])
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    assert keeper.next_delivery() is not None
    clock.advance(31)
    keeper.step()
    assert keeper.counts.ended == 1
    assert "1 leases ended while their messages were under way" in keeper.reports[-1]
    assert keeper.next_delivery() is None, "the redelivery only brings a new lease"
    assert keeper.counts.redelivered == 1
    assert server.pending == 1


def test_messages_that_the_task_never_saw_are_dropped_with_their_leases() -> None:
    """A message that waited here while its lease ended is emitted from its new delivery only."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=None, clock=clock)
    server.send(["a", "b"])
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    server.away = True
    keeper.step()
    assert keeper.next_delivery() is None
    assert keeper.waiting == 0
    assert keeper.counts.leased == 0


def test_a_refused_settlement_is_tried_again_after_a_pause() -> None:
    """Part of a batch may fail at the server; the rest is deleted at once."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=30, clock=clock)
    server.send(["a", "b", "c"])
    queue = MemoryQueue(server)
    keeper = LeaseKeeper(queue, clock, 10)
    keeper.step()
    while (delivery := keeper.next_delivery()) is not None:
        keeper.settle(delivery.message_id)
    queue.refuse = 1
    keeper.step()
    assert server.pending == 1
    keeper.step()
    assert server.pending == 1
    clock.advance(1.0)
    keeper.step()
    assert server.pending == 0
    assert keeper.counts.settled == 3


def test_a_paused_keeper_takes_nothing_and_keeps_its_leases() -> None:
    """A deactivated spout does not collect messages that others could work on."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=30, clock=clock)
    server.send(["a"])
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    keeper.pause(True)
    server.send(["b"])
    for _ in range(100):
        clock.advance(1.0)
        keeper.step()
    assert (server.ready, server.pending) == (1, 1)
    keeper.pause(False)
    keeper.step()
    assert server.pending == 2


def test_messages_that_the_topology_does_not_want_yet_are_left_to_others() -> None:
    """A task may hold many messages, but takes few ahead of its topology."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["a"] * 100)
    keeper = LeaseKeeper(MemoryQueue(server), ManualClock(), 50, max_waiting=10)
    held = []
    for number in range(10):
        keeper.step()
        keeper.step()
        assert server.pending == min(10 * (number + 1), 50)
        held += [keeper.next_delivery() for _ in range(10)]
    assert sum(one is not None for one in held) == 50


def test_many_leases_are_cut_into_calls_of_bounded_length() -> None:
    """A long statement holds up others on the server, and may outlast the client's patience."""
    clock, server = ManualClock(), MemoryQueueServer(lease_secs=30)
    server.send(["a"] * 4500)
    lengths: list[int] = []
    memory = MemoryQueue(server)
    keeper = LeaseKeeper(Watched(memory, lengths), clock, 10_000)
    keeper.step()
    clock.advance(15)
    keeper.step()
    assert lengths == [2000, 2000, 500]
    while (delivery := keeper.next_delivery()) is not None:
        keeper.settle(delivery.message_id)
    memory.refuse = 1
    keeper.step()
    assert lengths[3:] == [2000, 2000, 500]
    assert (keeper.counts.settled, keeper.unsettled) == (4499, 1)


def test_messages_are_deleted_in_the_order_of_their_acks() -> None:
    """A queue that deletes a run of messages by one call finds long runs."""
    server, order = MemoryQueueServer(lease_secs=30), list[Lease]()
    memory = MemoryQueue(server)

    class Listed(Watched):
        def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
            order.extend(leases)
            return super().settle(leases)

    server.send([str(number) for number in range(3000)])
    keeper = LeaseKeeper(Listed(memory, []), ManualClock(), 3000)
    keeper.step()
    taken = []
    while (delivery := keeper.next_delivery()) is not None:
        taken.append(delivery)
    taken.reverse()
    for delivery in taken:
        keeper.settle(delivery.message_id)
    keeper.step()
    assert order == [delivery.lease for delivery in taken]
