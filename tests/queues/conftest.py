"""Servers that the tests of a file share."""

from collections.abc import Iterator

import pytest

from sparkstorm.testing.servers import ElasticMQServer, KestrelServer


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
