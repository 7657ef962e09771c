"""RabbitMQ: the suite of all queues on a real server, and all that only RabbitMQ has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

import sparkstorm as ss
from sparkstorm.errors import ConfigError, EnvironmentFault, SpoutConnectionError
from sparkstorm.queues.decoding import WithDelivery
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.queues.rabbitmq import RabbitMQBolt, RabbitMQSpout
from sparkstorm.queues.rabbitmq.broker import Broker
from sparkstorm.queues.rabbitmq.link import Message
from sparkstorm.queues.rabbitmq.publisher import Publisher
from sparkstorm.testing import PATIENCE_SECS, FixedSpout, complete_topology, wait_until
from sparkstorm.testing.queues import QueueConformance, SpoutPlay
from sparkstorm.testing.servers import RabbitServer
from tests.queues.rabbit_bench import RabbitBench

pytestmark = pytest.mark.e2e


class TestClassicQueue(QueueConformance):
    """A durable classic queue."""

    restarts = True
    arguments: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def shared(self, rabbit: RabbitServer) -> None:
        self.server = rabbit
        rabbit.start()

    @contextmanager
    def bench(self) -> Iterator[RabbitBench]:
        bench = RabbitBench(self.server, self.arguments)
        bench.restarts = self.restarts
        yield bench


@pytest.mark.slow
class TestQuorumQueue(TestClassicQueue):
    """A quorum queue, but for the restarts of its server.

    RabbitMQ 3.10 that was killed while all messages of a quorum queue were unacknowledged lets no
    client consume from that queue: ``basic.consume`` ends with INTERNAL_ERROR after 65 seconds,
    again and again, a plain pika client's as well.
    """

    restarts = False
    arguments: ClassVar[dict[str, Any]] = {"x-queue-type": "quorum"}


def test_the_broker_counts_the_deliveries_of_a_quorum_queue(rabbit: RabbitServer) -> None:
    """A decoder sees the count, the redelivered flag and the publisher's headers."""
    bench = RabbitBench(rabbit, {"x-queue-type": "quorum"})
    bench.send([b"a"], headers={"tenant": "x"})
    bench.consumer_dies(1)
    seen = WithDelivery(lambda one: (f"{one.deliveries} {one.attributes}",))
    with SpoutPlay(bench.spout(decode=seen)) as play:
        play.take(1)
        (text,) = play.bodies()
        assert text.startswith("2 ")
        assert "'redelivered': True" in text
        assert "{'tenant': 'x'}" in text


def test_a_message_that_is_given_up_goes_to_the_dead_letter_exchange(rabbit: RabbitServer) -> None:
    """With ``broker_letters`` the broker gets the letter beside our own policy."""
    letters = RabbitBench(rabbit)
    route = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters.queue}
    bench = RabbitBench(rabbit, route)
    with SpoutPlay(bench.spout(broker_letters=True), max_retries=0) as play:
        bench.send([b"good", b"bad"])
        play.take(2)
        for msg_id, (body,) in list(play.under_way.items()):
            (play.ack if body == "good" else play.fail)(msg_id)
        wait_until(lambda: (bench.counts(), letters.counts()) == ((0, 0), (1, 0)), check=play.pump)
        assert len(play.given_up) == 1


def test_the_prefetch_grows_while_the_topology_asks_for_more(rabbit: RabbitServer) -> None:
    """A topology that asks for nothing holds a thousand messages, and one that asks holds all."""
    bench = RabbitBench(rabbit)
    bench.send([b"message %d" % number for number in range(2500)])
    with SpoutPlay(bench.spout(max_pending=2400)) as play:
        wait_until(lambda: bench.counts() == (1500, 1000))
        play.take(2400)
        play.pump()
        wait_until(lambda: bench.counts() == (100, 2400))
        play.ack(*list(play.under_way))
        play.take(1)
        play.ack(*list(play.under_way))
        wait_until(lambda: play.spout.counts.settled >= 2401, check=play.pump)
    wait_until(lambda: sum(bench.counts()) <= 99)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("guest:guest", "guest:geheim-and-long"), "ACCESS_REFUSED"),
        (("guest:guest@", "guest:guest@", "/nowhere"), "vhost nowhere not found"),
    ],
)
def test_a_refused_client_is_told_why_at_once(
    rabbit: RabbitServer, change: tuple[str, ...], text: str
) -> None:
    """The text names the server, and no password."""
    url = rabbit.url.replace(change[0], change[1]).removesuffix("/") + "".join(change[2:])
    with pytest.raises(EnvironmentFault, match=text) as caught:
        SpoutPlay(RabbitMQSpout("orders", url=url)).__enter__()
    assert rabbit.address in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_missing_queue_is_named(rabbit: RabbitServer) -> None:
    """Nothing waits for a queue that nobody has declared."""
    with pytest.raises(EnvironmentFault, match="no queue 'nowhere'"):
        SpoutPlay(RabbitMQSpout("nowhere", url=rabbit.url)).__enter__()


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    """The error names the address."""
    spout = RabbitMQSpout("orders", url="amqp://me:geheim-and-long@127.0.0.1:1/")
    with pytest.raises(SpoutConnectionError, match=r"127\.0\.0\.1:1.*refused") as caught:
        SpoutPlay(spout).__enter__()
    assert "geheim" not in str(caught.value)


def test_an_url_that_cannot_be_read_is_not_quoted() -> None:
    """An @ or / in a password makes part of the password the host."""
    for url in ("http://me:geheim@host/", "amqp://me:ge/heim@host/", "amqp://me:ge@heim@host/", ""):
        with pytest.raises(ConfigError, match="amqp://user:password@host:port") as caught:
            RabbitMQSpout("orders", url=url)
        assert "heim" not in str(caught.value)


def test_the_broker_confirms_each_message_of_the_bolt(rabbit: RabbitServer) -> None:
    """A tuple whose message reaches no queue fails, with the reason; the others are acked."""
    bench = RabbitBench(rabbit)
    builder = ss.TopologyBuilder()
    builder.set_spout("names", FixedSpout([["a", bench.queue], ["b", "nowhere"]], "body, to"))
    bolt = RabbitMQBolt(lambda tup: str(tup["to"]), url=rabbit.url)
    builder.set_bolt("send", bolt).shuffle_grouping("names")
    done = complete_topology(builder.create_topology(), config=ss.Config(max_retries=0))
    assert (done.statistics.acked, done.statistics.failed) == (1, 1)
    wait_until(lambda: bench.counts() == (1, 0))


def test_a_publisher_goes_on_after_the_server_was_away(rabbit: RabbitServer) -> None:
    """A connection that was lost between two batches is made anew, and loses no message."""
    bench = RabbitBench(rabbit)
    publisher = Publisher(Broker(url=rabbit.url), "test", mandatory=True)
    message = Message.of("", bench.queue, b"a", {"delivery_mode": 2})
    assert publisher.publish([message] * 3, PATIENCE_SECS) == [None] * 3
    bench.stop()
    with pytest.raises(QueueLostError, match="refused"):
        publisher.publish([message], PATIENCE_SECS)
    bench.start()
    assert publisher.publish([message] * 2, PATIENCE_SECS) == [None] * 2
    wait_until(lambda: bench.counts() == (5, 0))
    publisher.close()
