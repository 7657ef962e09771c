"""Kestrel: the suite of all queues, several servers, and what only Kestrel has."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import sparkstorm as ss
from sparkstorm.queues.kestrel import KestrelSpout
from sparkstorm.testing import wait_until
from sparkstorm.testing.queues import QueueBench, QueueConformance, SpoutPlay
from sparkstorm.testing.servers import KestrelServer
from tests.queues.kestrel_bench import KestrelBench


class TestKestrel(QueueConformance):
    """One server."""

    @pytest.fixture(autouse=True)
    def _on(self, kestrel: KestrelServer) -> None:
        self.server = kestrel

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield KestrelBench(self.server)


def test_several_servers_are_read_together(kestrel: KestrelServer) -> None:
    """Items of both servers come, and both servers hear of their ends."""
    with KestrelServer() as second:
        bench = KestrelBench(kestrel, second)
        with SpoutPlay(bench.spout()) as play:
            bench.send([f"item {number}".encode() for number in range(10)])
            play.ack(*play.take(10))
            wait_until(lambda: bench.counts() == (0, 0))
            assert {msg_id[0] for msg_id in play.emits} == {kestrel.address, second.address}  # type: ignore[index]


def test_one_server_serves_while_the_other_is_away(kestrel: KestrelServer) -> None:
    """The items of the server that is left go on; those of the other come when it is back."""
    with KestrelServer() as second:
        bench = KestrelBench(kestrel, second)
        with SpoutPlay(bench.spout()) as play:
            bench.send([b"first", b"second"])
            play.take(2)
            second.kill()
            wait_until(lambda: any("is back" in text for text in play.errors), check=play.pump)
            kestrel.set(bench.queue, b"third")
            wait_until(lambda: "third" in play.bodies(), check=play.pump)
            second.start()
            play.ack(*list(play.under_way))
            wait_until(lambda: bench.counts() == (0, 0), check=play.pump)
            assert set(play.emits.values()) == {1}


def test_items_of_equal_content_are_items_of_their_own(kestrel: KestrelServer) -> None:
    """Content alone is no identity while the connections live."""
    bench = KestrelBench(kestrel)
    with SpoutPlay(bench.spout()) as play:
        bench.send([b"tick"] * 5)
        play.ack(*play.take(5))
        wait_until(lambda: bench.counts() == (0, 0))
        bench.send([b"tick"] * 5)
        play.ack(*play.take(5))
        wait_until(lambda: bench.counts() == (0, 0))
        assert len(play.emits) == 10


def test_what_is_no_kestrel_is_refused() -> None:
    """Wrong addresses are told within seconds, by their name."""
    with pytest.raises(ss.ConfigError, match="'nowhere' is no address of a Kestrel"):
        KestrelSpout("q", ["nowhere"])
    with pytest.raises(ss.ConfigError, match="timeout_secs is 0: give a number above 0"):
        KestrelSpout("q", timeout_secs=0)
    with pytest.raises(ss.ConfigError, match="'a/b' is no name of a Kestrel queue"):
        KestrelSpout("a/b")


def test_items_that_go_back_come_before_all_others(kestrel: KestrelServer) -> None:
    """A consumer that goes does not put its items at the end of the queue."""
    bench = KestrelBench(kestrel)
    bench.send([b"a", b"b", b"c"])
    with SpoutPlay(bench.spout(max_pending=2)) as play:
        play.take(2)
    with SpoutPlay(bench.spout(max_pending=1)) as play:
        order = []
        for _ in range(3):
            (msg_id,) = play.take(1)
            order += play.bodies()
            play.ack(msg_id)
    assert sorted(order[:2]) == ["a", "b"]
    assert order[2] == "c"
