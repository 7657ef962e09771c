"""SQS on an ElasticMQ: the suite of all queues, and what only SQS has."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sparkstorm.testing.queues import QueueBench, QueueConformance
from sparkstorm.testing.servers import ElasticMQServer
from tests.queues.sqs_bench import SQSBench


class TestStandard(QueueConformance):
    """A standard queue."""

    @pytest.fixture(autouse=True)
    def _on(self, elasticmq: ElasticMQServer) -> None:
        self.server = elasticmq

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield SQSBench(self.server)


class TestFifo(QueueConformance):
    """A FIFO queue, each message in a group of its own."""

    @pytest.fixture(autouse=True)
    def _on(self, elasticmq: ElasticMQServer) -> None:
        self.server = elasticmq

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield SQSBench(self.server, fifo=True)
