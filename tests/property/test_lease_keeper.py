"""The lease keeper under any order of events: acks, time, a server that goes, a second consumer."""

from collections.abc import Hashable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sparkstorm.queues.keeper import LeaseKeeper
from sparkstorm.testing import ManualClock
from sparkstorm.testing.queues import MemoryQueue, MemoryQueueServer

LEASE_SECS = 30.0
MAX_PENDING = 4
MAX_WAITING = 2


class Keeping(RuleBasedStateMachine):
    """One task works through a queue, and a second consumer takes whatever is ready."""

    @initialize(survive=st.booleans(), max_waiting=st.sampled_from([None, MAX_WAITING]))
    def start(self, survive: bool, max_waiting: int | None) -> None:
        self.clock = ManualClock()
        self.server = MemoryQueueServer(
            lease_secs=LEASE_SECS if survive else None, clock=self.clock
        )
        self.queue = MemoryQueue(self.server)
        self.max_waiting = MAX_PENDING if max_waiting is None else max_waiting
        self.keeper = LeaseKeeper(self.queue, self.clock, MAX_PENDING, max_waiting)
        self.other = MemoryQueue(self.server)
        self.other.connect()
        self.sent = 0
        self.under_way: set[Hashable] = set()
        self.worked: list[Hashable] = []
        self.done: set[Hashable] = set()
        self.faults = 0
        self.stepped_at = 0.0

    @rule(count=st.integers(1, 5))
    def send(self, count: int) -> None:
        self.server.send([f"message {self.sent + n}" for n in range(count)])
        self.sent += count

    @rule()
    def step(self) -> None:
        self.keeper.step()
        self.stepped_at = self.clock.monotonic()

    @rule()
    def begin(self) -> None:
        delivery = self.keeper.next_delivery()
        if delivery is not None:
            assert delivery.message_id not in self.under_way, "a second copy runs"
            assert delivery.message_id not in self.done, "a settled message runs again"
            self.under_way.add(delivery.message_id)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        message_id = data.draw(st.sampled_from(sorted(self.under_way, key=str)))
        self.under_way.discard(message_id)
        self.done.add(message_id)
        self.keeper.settle(message_id)

    @rule(secs=st.sampled_from([0.05, 1.0, LEASE_SECS / 4]))
    def pass_time(self, secs: float) -> None:
        """Let time pass, as a client thread that lives sees it: with a step now and then."""
        self.clock.advance(secs)
        self.step()

    @rule()
    def sleep_through_a_lease(self) -> None:
        """Let the client thread be away for longer than a lease."""
        self.clock.advance(LEASE_SECS * 1.5)
        self.faults += 1

    @rule()
    def lose_the_server(self) -> None:
        self.server.away = True
        self.keeper.step()
        self.faults += 1

    @rule()
    def bring_back_the_server(self) -> None:
        self.server.away = False

    @rule(count=st.integers(1, 3))
    def refuse_settlements(self, count: int) -> None:
        self.queue.refuse = count

    @rule()
    def another_consumer_looks(self) -> None:
        """Without a fault nothing that is under way here is handed out elsewhere."""
        if self.server.away:
            return
        taken = self.other.take(100, 0)
        if not self.faults:
            assert not self.under_way & {one.message_id for one in taken}
        self.other.give_back([one.lease for one in taken])

    @invariant()
    def at_most_max_pending_leases_are_held(self) -> None:
        assert self.keeper.counts.leased <= MAX_PENDING
        assert self.keeper.waiting <= self.max_waiting

    def teardown(self) -> None:
        """In the end all is worked through, whatever came before."""
        if not hasattr(self, "server"):
            return
        self.server.away, self.queue.refuse = False, 0
        for _ in range(20 + 4 * self.sent):
            self.clock.advance(LEASE_SECS / 3)
            self.keeper.step()
            self.begin()
            for message_id in self.under_way:
                self.done.add(message_id)
                self.keeper.settle(message_id)
            self.under_way.clear()
        assert len(self.done) == self.sent
        assert (self.server.ready, self.server.pending) == (0, 0)
        assert self.keeper.counts.leased == 0


TestKeeping = Keeping.TestCase


@pytest.mark.parametrize("lease_secs", [None, LEASE_SECS])
def test_close_deletes_settled_messages_and_gives_the_others_back(lease_secs: float | None) -> None:
    """Nothing waits for the end of a lease after a shutdown."""
    clock = ManualClock()
    server = MemoryQueueServer(lease_secs=lease_secs, clock=clock)
    server.send(["a", "b", "c"])
    keeper = LeaseKeeper(MemoryQueue(server), clock, 10)
    keeper.step()
    first = keeper.next_delivery()
    assert first is not None
    keeper.settle(first.message_id)
    keeper.close()
    assert (server.ready, server.pending) == (2, 0)
