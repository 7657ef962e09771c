"""The suite's server is away for a minute, as an update of a server takes."""

from contextlib import AbstractContextManager, nullcontext
from typing import final

import pytest

from sparkstorm.testing.queues import QueueBench, QueueConformance
from sparkstorm.testing.servers import (
    ElasticMQServer,
    KestrelServer,
    PostgresServer,
    RabbitServer,
    RedisServer,
)
from tests.queues.kestrel_bench import KestrelBench
from tests.queues.postgres_bench import PostgresBench
from tests.queues.rabbit_bench import RabbitBench
from tests.queues.redis_bench import RedisBench
from tests.queues.sqs_bench import SQSBench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@final
class Suite(QueueConformance):
    """The suite on one queue; the tests of this file run one test of it."""

    away_secs = 60.0

    def __init__(self, bench: QueueBench) -> None:
        self._bench = bench

    def bench(self) -> AbstractContextManager[QueueBench]:
        return nullcontext(self._bench)


def test_sqs(elasticmq: ElasticMQServer) -> None:
    """The visibility of the messages under way ends meanwhile."""
    Suite(SQSBench(elasticmq)).test_consuming_goes_on_after_the_server_was_away()


def test_kestrel(kestrel: KestrelServer) -> None:
    """Items are known again by their content, although their connections are lost."""
    Suite(KestrelBench(kestrel)).test_consuming_goes_on_after_the_server_was_away()


def test_redis_streams(redis: RedisServer) -> None:
    """The leases of the entries under way end meanwhile."""
    Suite(RedisBench(redis, 1.0)).test_consuming_goes_on_after_the_server_was_away()


def test_postgres(postgres: PostgresServer) -> None:
    """The leases of the rows under way end meanwhile."""
    Suite(PostgresBench(postgres, 1.0)).test_consuming_goes_on_after_the_server_was_away()


def test_rabbitmq(rabbit: RabbitServer) -> None:
    """The server hands the messages out anew: their names stay the same."""
    Suite(RabbitBench(rabbit)).test_consuming_goes_on_after_the_server_was_away()
