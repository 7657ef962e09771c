"""Word counts from queues whose driver, workers and server are killed: nothing is lost."""

from pathlib import Path

import pytest

from sparkstorm.testing.servers import (
    ElasticMQServer,
    KestrelServer,
    PostgresServer,
    RabbitServer,
    RedisServer,
)
from tests.queues.kestrel_bench import KestrelBench
from tests.queues.kill_loop import kill_loop
from tests.queues.postgres_bench import PostgresBench
from tests.queues.rabbit_bench import RabbitBench
from tests.queues.redis_bench import RedisBench
from tests.queues.sqs_bench import SQSBench

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(600)]


def test_sqs(elasticmq: ElasticMQServer, tmp_path: Path) -> None:
    """Queue attributes show no message, ready or hidden, in the end."""
    bench = SQSBench(elasticmq, lease_secs=5)
    spout = bench.spout(fields="sentence", ends_after_idle_secs=15.0)
    kill_loop(bench, spout, tmp_path, lines=600, kills=6)


def test_kestrel(kestrel: KestrelServer, tmp_path: Path) -> None:
    """Kestrel's stats show no item, ready or open, in the end."""
    bench = KestrelBench(kestrel)
    spout = bench.spout(fields="sentence", ends_after_idle_secs=5.0)
    kill_loop(bench, spout, tmp_path, lines=600, kills=6)


def test_redis_streams(redis: RedisServer, tmp_path: Path) -> None:
    """XPENDING shows no entry, and the stream is empty, in the end."""
    bench = RedisBench(redis, lease_secs=5)
    spout = bench.spout(ends_after_idle_secs=15.0)
    kill_loop(bench, spout, tmp_path, lines=600, kills=6)


def test_postgres(postgres: PostgresServer, tmp_path: Path) -> None:
    """The table is empty in the end."""
    bench = PostgresBench(postgres, lease_secs=5)
    spout = bench.spout(ends_after_idle_secs=15.0)
    kill_loop(bench, spout, tmp_path, lines=600, kills=6)


def test_rabbitmq(rabbit: RabbitServer, tmp_path: Path) -> None:
    """``rabbitmqctl list_queues`` shows no message, ready or unacknowledged, in the end."""
    bench = RabbitBench(rabbit)
    spout = bench.spout(fields="sentence", ends_after_idle_secs=5.0)
    kill_loop(bench, spout, tmp_path, lines=600, kills=6)
