"""Servers that the tests of a file share."""

from collections.abc import Callable, Iterator

import pytest

from sparkstorm.testing.queues import QueueConformance
from sparkstorm.testing.servers import (
    ElasticMQServer,
    KestrelServer,
    PostgresServer,
    RedisServer,
)

QueueConformance.away_secs = 1.0  # test_away.py has the minute


@pytest.fixture(scope="module")
def elasticmq() -> Iterator[ElasticMQServer]:
    """An ElasticMQ of this file."""
    with ElasticMQServer() as server:
        yield server


@pytest.fixture(scope="module")
def kestrel() -> Iterator[KestrelServer]:
    """A Kestrel of this file."""
    with KestrelServer() as server:
        yield server


@pytest.fixture(scope="module")
def redis(started: Callable[[RedisServer], RedisServer]) -> Iterator[RedisServer]:
    """A Redis of this file; each test empties it."""
    with started(RedisServer()) as server:
        yield server


@pytest.fixture(scope="module")
def postgres(started: Callable[[PostgresServer], PostgresServer]) -> Iterator[PostgresServer]:
    """A PostgreSQL of this file; each test makes its table."""
    with started(PostgresServer()) as server:
        yield server
