"""Redis Streams: the suite of all queues on a real Redis, and Redis's own troubles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

import sparkstorm as ss
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.queues import QueueLostError
from sparkstorm.queues.redis import (
    Redis,
    RedisStreamBolt,
    RedisStreamQueue,
    RedisStreamSpout,
)
from sparkstorm.testing import FeederSpout, LocalRunner
from sparkstorm.testing.queues import QueueBench, QueueConformance, SpoutPlay
from sparkstorm.testing.servers import RedisServer
from sparkstorm.testing.waiting import wait_until
from tests.queues.redis_bench import RedisBench, client_of

pytestmark = pytest.mark.e2e

LEASE_SECS = 1.0


@pytest.fixture
def server(redis: RedisServer) -> RedisServer:
    """The server of this file."""
    return redis


@pytest.fixture
def client(server: RedisServer) -> Iterator[Any]:
    """A bare client of the empty server."""
    with client_of(server) as found:
        found.execute_command("FLUSHALL")
        yield found


def queue_of(server: RedisServer, consumer: str = "a", **options: Any) -> RedisStreamQueue:
    options = {"lease_secs": LEASE_SECS, "start": "0", **options}
    return RedisStreamQueue(Redis(url=server.url), "s", "g", consumer, **options)


class TestRedisStreams(QueueConformance):
    """Redis keeps the promises of all queues."""

    server: ClassVar[RedisServer]

    @pytest.fixture(autouse=True)
    def _with_server(self, server: RedisServer) -> None:
        type(self).server = server

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield RedisBench(self.server, LEASE_SECS)


def test_an_entry_that_another_has_claimed_is_not_extended(
    server: RedisServer, client: Any
) -> None:
    """The delivery count fences the lease, although both consumers have one name."""
    one, two = queue_of(server, lease_secs=600), queue_of(server, lease_secs=600)
    one.connect()
    client.execute_command("XADD", "s", "*", "body", "a")
    (first,) = one.take(1, 0)
    assert one.extend([first.lease]) == []
    client.execute_command("XCLAIM", "s", "g", "a", 0, first.message_id, "IDLE", 700_000, "JUSTID")
    two.connect()
    (second,) = two.take(1, 0)
    assert (second.message_id, second.deliveries) == (first.message_id, 2)
    assert one.extend([first.lease]) == [first.lease]
    one.give_back([first.lease])
    assert two.extend([second.lease]) == []
    assert two.settle([second.lease]) == ()
    assert client.execute_command("XPENDING", "s", "g", "-", "+", 9) == []
    one.close()
    two.close()


def test_entries_trimmed_while_pending_are_counted_once(server: RedisServer, client: Any) -> None:
    """Their messages are under way here, and nobody else gets them: the leases have no end."""
    queue = queue_of(server)
    queue.connect()
    for body in "abc":
        client.execute_command("XADD", "s", "*", "body", body)
    leases = [one.lease for one in queue.take(3, 0)]
    client.execute_command("XTRIM", "s", "MAXLEN", 1)
    assert [queue.extend(leases), queue.extend(leases)] == [[], []]
    assert queue.trimmed == 2
    assert "2 entries were trimmed" in queue.reports[0]
    assert queue.settle(leases) == ()
    assert client.execute_command("XPENDING", "s", "g", "-", "+", 9) == []
    queue.close()


def test_an_entry_without_the_field_becomes_a_dead_letter(server: RedisServer, client: Any) -> None:
    """The letter says which fields there are; other entries go on."""
    bench = RedisBench(server, LEASE_SECS)
    with SpoutPlay(bench.spout()) as play:
        client.execute_command("XADD", "s", "*", "other", "a")
        bench.send([b"b"])
        play.ack(*play.take(1))
        wait_until(lambda: play.given_up, check=play.pump)
        ((_, failure, _),) = play.given_up
        assert "no field 'body', but 'other'" in failure.message
        wait_until(lambda: bench.counts() == (0, 0), check=play.pump)


def test_a_missing_group_is_refused_with_the_command_that_makes_it(
    server: RedisServer, client: Any
) -> None:
    """A typing error makes no stream."""
    with pytest.raises(EnvironmentFault, match="XGROUP CREATE s g 0 MKSTREAM"):
        queue_of(server, start=None).connect()
    assert client.execute_command("EXISTS", "s") == 0


def test_a_group_that_vanishes_is_made_again(server: RedisServer, client: Any) -> None:
    """As after a failover to an empty server, if the spout may make its group."""
    queue = queue_of(server)
    queue.connect()
    client.execute_command("FLUSHALL")
    with pytest.raises(QueueLostError, match="NOGROUP"):
        queue.take(1, 0)
    queue.connect()
    assert queue.take(1, 0) == []
    queue.close()


def test_mistakes_on_the_server_are_named(server: RedisServer, client: Any) -> None:
    """Keys of another type, missing rights, a wrong id: no later try helps."""
    client.execute_command("SET", "s", "text")
    with pytest.raises(EnvironmentFault, match="the key is no stream"):
        queue_of(server).connect()
    client.execute_command("DEL", "s")
    with pytest.raises(EnvironmentFault, match="start is '0'"):
        queue_of(server, start="now").connect()
    client.execute_command("ACL", "SETUSER", "guest", "on", ">geheim1234", "~*", "+ping")
    address = server.url.replace("//", "//guest:geheim1234@")
    with pytest.raises(EnvironmentFault, match="ACL SETUSER"):
        RedisStreamQueue(Redis(url=address), "s", "g", "a").connect()


def test_a_wrong_password_is_named_and_not_shown(
    started: Callable[[RedisServer], RedisServer],
) -> None:
    """Neither the right nor the wrong password is in the message."""
    with started(RedisServer(password="geheimnis")) as locked:  # noqa: S106
        for address in (
            locked.url.replace("geheimnis", "falsches"),
            locked.url.replace(":geheimnis@", ""),
        ):
            with pytest.raises(
                EnvironmentFault, match="user and the password in the URL"
            ) as caught:
                RedisStreamQueue(Redis(url=address), "s", "g", "a").connect()
            assert "geheimnis" not in str(caught.value)
            assert "falsches" not in str(caught.value)


def test_the_bolt_adds_entries_and_fails_tuples_of_refused_ones(
    server: RedisServer, client: Any
) -> None:
    """A round trip serves many tuples; the server's reason is in the failure."""
    builder = ss.TopologyBuilder()
    feeder = FeederSpout(["body"])
    builder.set_spout("feed", feeder)
    builder.set_bolt("out", RedisStreamBolt("out", url=server.url)).shuffle_grouping("feed")
    with LocalRunner(builder.create_topology(), config=Config(max_retries=0)) as runner:
        for body in ("a", "b"):
            feeder.feed([body], body)
        runner.run_until_idle()
        assert feeder.acked == ["a", "b"]
        client.execute_command("SET", "out", "text")
        feeder.feed(["c"], "c")
        runner.run_until_idle()
        assert feeder.failed == ["c"]


class TestMistakes:
    """Mistakes that show where the spout is made, without a server."""

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"url": "http://host"}, "not shown here"),
            ({"url": "redis://:ge@heim@host"}, "not shown here"),
            ({"url": "redis://host/one"}, "not shown here"),
            ({"url": "redis://host?sokket_timeout=1"}, "not shown here"),
            ({"lease_secs": 0}, "lease_secs is 0"),
            ({"group": ""}, "the group has no name"),
            ({"timeout_secs": 0}, "timeout_secs is 0"),
        ],
    )
    def test_arguments_are_checked(self, options: dict[str, Any], said: str) -> None:
        """No password is in any message."""
        with pytest.raises(ConfigError, match=said) as caught:
            RedisStreamSpout("s", **{"url": "redis://host", "group": "g", **options})
        assert "heim" not in str(caught.value)
