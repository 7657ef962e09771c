"""The queue spout: groups, ends, and topologies on a queue in memory."""

import pytest

import sparkstorm as ss
from sparkstorm.clock import SystemClock
from sparkstorm.queues import WithDelivery
from sparkstorm.testing import complete_topology
from sparkstorm.testing.queues import MemoryQueueServer, MemoryQueueSpout, SpoutPlay


class FailOnce(ss.BasicBolt):
    """Counts a message at its second try."""

    outputs = "word string, attempt int"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup.attempt == 1:
            raise ValueError("not yet")
        collector.emit([tup["body"], tup.attempt])


def test_a_topology_on_a_queue_retries_and_leaves_the_queue_empty() -> None:
    """Failed messages are retried by the policy, on one delivery each."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["a", "b", "c"])
    builder = ss.TopologyBuilder()
    builder.set_spout("queue", MemoryQueueSpout(server, ends_after_idle_secs=0.2))
    builder.set_bolt("fail", FailOnce()).shuffle_grouping("queue")
    done = complete_topology(
        builder.create_topology(), config=ss.Config(retry_backoff_secs=0), clock=SystemClock()
    )
    assert sorted(done.values("fail")) == [("a", 2), ("b", 2), ("c", 2)]
    assert (done.statistics.acked, done.statistics.retried) == (3, 3)
    assert (server.ready, server.pending, len(server.delivered)) == (0, 0, 3)


def test_one_message_of_a_group_is_under_way_at_a_time() -> None:
    """A failed message holds back its group, and no other group."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["a1", "a2", "a3"], group="a")
    server.send(["b1"], group="b")
    with SpoutPlay(MemoryQueueSpout(server)) as play:
        first, other = play.take(2)
        assert play.bodies() == ["a1", "b1"]
        play.fail(first)
        play.ack(other)
        play.take(1)
        assert play.bodies() == ["a1"]
        play.ack(first)
        order: list[str] = []
        while len(order) < 2:
            (msg_id,) = play.take(1)
            order += play.bodies()
            play.ack(msg_id)
        assert order == ["a2", "a3"]


def test_a_message_of_a_group_that_is_given_up_frees_its_group() -> None:
    """One poison does not stop its group for ever."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["a1", "a2"], group="a")
    with SpoutPlay(MemoryQueueSpout(server), max_retries=0) as play:
        play.fail(*play.take(1))
        play.take(1)
        assert play.bodies() == ["a2"]
        assert len(play.given_up) == 1


def test_a_broken_message_of_a_group_frees_its_group() -> None:
    """A message that cannot be decoded has ended."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["{", "7"], group="a")
    with SpoutPlay(MemoryQueueSpout(server, decode="json")) as play:
        play.take(1)
        assert play.bodies() == [7]


def test_a_decoder_sees_the_delivery() -> None:
    """The number of deliveries is there for those who ask."""
    server = MemoryQueueServer(lease_secs=30)
    server.send(["a"])
    read = WithDelivery(lambda delivery: (delivery.body.decode(), delivery.deliveries))
    spout = MemoryQueueSpout(server, fields="body string, deliveries int", decode=read)
    with SpoutPlay(spout) as play:
        play.take(1)
        assert list(play.under_way.values()) == [("a", 1)]


def test_wrong_arguments_are_refused() -> None:
    """Each mistake is named before anything starts."""
    server = MemoryQueueServer()
    with pytest.raises(ss.ConfigError, match="max_pending is 0: give a number from 1 up"):
        MemoryQueueSpout(server, max_pending=0)
    with pytest.raises(ss.ConfigError, match="unknown format 'yaml'"):
        MemoryQueueSpout(server, decode="yaml")  # type: ignore[arg-type]


def test_a_server_that_does_not_answer_at_the_start_ends_the_run_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong address is told within seconds."""
    monkeypatch.setattr("sparkstorm.queues.spout._CONNECT_SECS", 0.1)
    server = MemoryQueueServer()
    server.away = True
    with pytest.raises(ss.SpoutConnectionError, match=f"queue {server.name} is away"):
        SpoutPlay(MemoryQueueSpout(server)).__enter__()
