"""An SQS queue on an ElasticMQ, for the suite and for tests of its own."""

import itertools
from collections.abc import Sequence
from typing import Any

import boto3

from sparkstorm.queues import QueueSpout
from sparkstorm.queues.sqs import SQSSpout
from sparkstorm.testing.queues import QueueBench
from sparkstorm.testing.servers import ElasticMQServer

KEYS = {"aws_access_key_id": "someone", "aws_secret_access_key": "sesame-open"}
REGION = "eu-west-1"
_numbers = itertools.count()


class SQSBench(QueueBench):
    """A new queue; messages of a FIFO queue are of one group."""

    def __init__(self, server: ElasticMQServer, *, fifo: bool = False, lease_secs: int = 2) -> None:
        self.lease_secs = lease_secs
        self._fifo = fifo
        self.server = server
        self.queue = f"queue{next(_numbers)}" + ".fifo" * fifo
        self.client: Any = boto3.client("sqs", endpoint_url=server.url, region_name=REGION, **KEYS)
        attributes = {"FifoQueue": "true"} if fifo else {}
        made = self.client.create_queue(QueueName=self.queue, Attributes=attributes)
        self.url = made["QueueUrl"]
        self._sent = itertools.count()

    def spout(
        self, *, decode: Any = "string", max_pending: int | None = None, **more: Any
    ) -> QueueSpout:
        return SQSSpout(
            self.queue,
            endpoint_url=self.server.url,
            region_name=REGION,
            credentials=KEYS,
            visibility_secs=int(self.lease_secs or 30),
            poll_secs=1,
            timeout_secs=2,
            decode=decode,
            max_pending=max_pending,
            **more,
        )

    def send(self, bodies: Sequence[bytes], *, group: str | None = None) -> None:
        for body in bodies:
            number = next(self._sent)
            names = {"MessageGroupId": group or f"g{number}", "MessageDeduplicationId": str(number)}
            self.client.send_message(
                QueueUrl=self.url,
                MessageBody=body.decode(),
                **(names if self._fifo else {}),
            )

    def counts(self) -> tuple[int, int]:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        got = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        ready, pending = (int(got["Attributes"][name]) for name in names)
        return ready, pending

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        self.server.freeze()

    def thaw(self) -> None:
        self.server.thaw()
