"""SQS on an ElasticMQ: the suite of all queues, and what only SQS has."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.clock import SystemClock
from sparkstorm.queues import Delivery, WithDelivery
from sparkstorm.queues.sqs import SQSBolt, SQSSpout
from sparkstorm.queues.sqs.access import Access
from sparkstorm.queues.sqs.queue import SQSQueue
from sparkstorm.testing import FixedSpout, LocalRunner, complete_topology, wait_until
from sparkstorm.testing.queues import QueueBench, QueueConformance, SpoutPlay
from sparkstorm.testing.servers import ElasticMQServer
from sparkstorm.texts.credentials import masked
from tests.queues.sqs_bench import KEYS, REGION, SQSBench


class TestStandard(QueueConformance):
    """A standard queue."""

    @pytest.fixture(autouse=True)
    def _on(self, elasticmq: ElasticMQServer) -> None:
        self.server = elasticmq

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield SQSBench(self.server, lease_secs=1)


@pytest.mark.slow
class TestFifo(QueueConformance):
    """A FIFO queue, each message in a group of its own."""

    @pytest.fixture(autouse=True)
    def _on(self, elasticmq: ElasticMQServer) -> None:
        self.server = elasticmq

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield SQSBench(self.server, fifo=True)


@pytest.fixture
def bench(elasticmq: ElasticMQServer) -> SQSBench:
    """A standard queue."""
    return SQSBench(elasticmq)


@pytest.fixture
def fifo(elasticmq: ElasticMQServer) -> SQSBench:
    """A FIFO queue."""
    return SQSBench(elasticmq, fifo=True)


def test_a_group_keeps_its_order_although_a_message_fails(fifo: SQSBench) -> None:
    """Later messages of the group wait for the retry; other groups go on."""
    with SpoutPlay(fifo.spout()) as play:
        fifo.send([b"a1", b"a2", b"a3"], group="a")
        fifo.send([b"b1"], group="b")
        play.take(2)
        assert sorted(play.bodies()) == ["a1", "b1"]
        failed = next(one for one, values in play.under_way.items() if values == ("a1",))
        play.fail(failed)
        order: list[str] = []
        while len(order) < 4:
            (msg_id, *_) = play.take(1)
            order += play.under_way[msg_id]
            play.ack(msg_id)
        assert [body for body in order if body != "b1"] == ["a1", "a2", "a3"]
        wait_until(lambda: fifo.counts() == (0, 0))


class Slow(ss.BasicBolt):
    """Takes three times the visibility time."""

    outputs = "body string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        time.sleep(6)
        collector.emit([tup["body"]])


@pytest.mark.slow
def test_a_bolt_of_three_times_the_visibility_runs_once(bench: SQSBench) -> None:
    """In a whole topology, whose bolt keeps its thread all the time."""
    bench.send([b"a"])
    builder = ss.TopologyBuilder()
    builder.set_spout("queue", bench.spout())
    builder.set_bolt("slow", Slow()).shuffle_grouping("queue")
    with LocalRunner(builder.create_topology(), clock=SystemClock()) as run:
        wait_until(lambda: run.statistics().acked, check=run.step)
        wait_until(lambda: bench.counts() == (0, 0), check=run.step)
        assert (run.statistics().emitted, run.statistics().failed) == (1, 0)


def test_the_number_of_deliveries_and_attributes_are_visible(bench: SQSBench) -> None:
    """A decoder sees how often SQS handed out the message."""
    bench.send([b"a"])
    read = WithDelivery(lambda delivery: (delivery.body.decode(), delivery.deliveries))
    for deliveries in (1, 2):
        with SpoutPlay(bench.spout(decode=read, fields="body, deliveries")) as play:
            play.take(1)
            assert list(play.under_way.values()) == [("a", deliveries)]


def test_a_part_of_a_batch_may_fail(bench: SQSBench) -> None:
    """A handle that SQS refuses holds up none of the others."""
    queue = SQSQueue(
        Access(
            queue=bench.queue,
            endpoint_url=bench.server.url,
            region_name=REGION,
            credentials=KEYS,
        ),
        visibility_secs=30,
        poll_secs=1,
    )
    queue.connect()
    bench.send([b"message"] * 12)
    taken: list[Delivery] = []
    while len(taken) < 12:
        taken += queue.take(20, 0.5)
    leases = [one.lease for one in taken]
    broken = "no handle at all"
    assert list(queue.extend([*leases[:5], broken, *leases[5:]])) == [broken]
    assert list(queue.settle([*leases[:5], broken, *leases[5:]])) == [broken]
    wait_until(lambda: bench.counts() == (0, 0))
    queue.close()


def test_a_queue_by_its_url(bench: SQSBench) -> None:
    """A URL does as well as a name."""
    bench.send([b"a"])
    bench.queue = bench.url
    with SpoutPlay(bench.spout()) as play:
        play.ack(*play.take(1))
        wait_until(lambda: bench.counts() == (0, 0))


def test_a_missing_queue_is_named(bench: SQSBench) -> None:
    """One sentence, at once, and no password in it."""
    bench.queue = "nowhere"
    with pytest.raises(ss.EnvironmentFault) as error, SpoutPlay(bench.spout()):
        pass
    assert str(error.value).startswith("SQS queue nowhere at http://127.0.0.1:")
    assert "does not exist: create the queue, or mend its name and region" in str(error.value)
    assert KEYS["aws_secret_access_key"] not in str(error.value)


def test_missing_credentials_and_regions_are_named(
    elasticmq: ElasticMQServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither takes longer than seconds."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    no_keys = SQSSpout("q", endpoint_url=elasticmq.url, region_name=REGION)
    with pytest.raises(ss.EnvironmentFault, match="has no credentials"), SpoutPlay(no_keys):
        pass
    with (
        pytest.raises(ss.EnvironmentFault, match="has no region: give region_name"),
        SpoutPlay(SQSSpout("q", credentials=KEYS)),
    ):
        pass


def test_credentials_are_never_shown() -> None:
    """Not by the access, and not in a text that quotes them."""
    access = Access(queue="q", credentials=KEYS)
    assert KEYS["aws_secret_access_key"] not in repr(access)
    assert masked(f"bad key {KEYS['aws_secret_access_key']}") == "bad key ***"


def test_wrong_times_are_refused() -> None:
    """SQS has limits of its own, told before anything starts."""
    with pytest.raises(ss.ConfigError, match="visibility_secs is 0: SQS takes 1 to 43200"):
        SQSSpout("q", visibility_secs=0)
    with pytest.raises(ss.ConfigError, match="timeout_secs is 0: give a number above 0"):
        SQSSpout("q", timeout_secs=0)
    with pytest.raises(ss.ConfigError, match="poll_secs is 30: SQS takes 0 to 20"):
        SQSSpout("q", poll_secs=30)


def test_the_bolt_sends_every_tuple(bench: SQSBench, fifo: SQSBench) -> None:
    """More than a call takes; SQS refuses an empty body, and only that tuple fails."""
    where: dict[str, Any] = {
        "endpoint_url": bench.server.url,
        "region_name": REGION,
        "credentials": KEYS,
    }
    builder = ss.TopologyBuilder()
    builder.set_spout("source", FixedSpout([[f"m{n}"] for n in range(25)] + [[""]], "body string"))
    builder.set_bolt("send", SQSBolt(bench.queue, **where)).shuffle_grouping("source")
    by_number = SQSBolt(fifo.queue, group="body", deduplication_id="body", **where)
    builder.set_bolt("ordered", by_number).shuffle_grouping("source")
    done = complete_topology(builder.create_topology())
    assert (done.statistics.acked, done.statistics.failed) == (25, 1)
    wait_until(lambda: (bench.counts(), fifo.counts()) == ((25, 0), (25, 0)))
