"""The SQSBolt: one message per tuple, acked when SQS has it."""

from collections.abc import Callable
from typing import Any, TypeAlias, final

from botocore.exceptions import BotoCoreError, ClientError

from sparkstorm.components.bolt import Bolt
from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.formats import Format, Writer, writer_of
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.queues.sqs.access import BATCH, Access
from sparkstorm.texts.user_errors import words_of
from sparkstorm.tuples import Tuple

__all__ = ["SQSBolt"]

_BATCH_BYTES = 200_000
"""The most bytes of bodies in a batch call; SQS itself takes 256 KiB, with all attributes."""

Selector: TypeAlias = str | Callable[[Tuple], Any]
"""A field's name, or a function of the tuple."""


@final
class SQSBolt(Bolt):
    """Sends a message for each tuple, ten at a time; a tuple is acked once SQS has its message.

    A message that SQS does not take fails its tuple, with the reason of SQS; the other messages of
    the call are acked. A message may be sent twice, if its tree is tried again.

    Args:
        queue: the queue's name, or its URL.
        body: the field that is sent, or a function of the tuple.
        body_format: how the body is written: ``"string"``, ``"bytes"`` (UTF-8 text), ``"json"``,
            or a function that returns bytes.
        group: the field or function for the group; a FIFO queue needs it.
        deduplication_id: the field or function for the name under which a FIFO queue drops a
            second copy within five minutes. Unset: the queue's own setting decides.
        region_name: the region. Unset: as boto3 finds it.
        endpoint_url: another server than Amazon's.
        credentials: as :class:`SQSSpout` takes them; never shown.
    """

    transient = ("_client", "_url", "_entries", "_tuples", "_bytes")

    def __init__(
        self,
        queue: str,
        *,
        body: Selector = "body",
        body_format: Format | Writer = "string",
        group: Selector | None = None,
        deduplication_id: Selector | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        credentials: dict[str, str] | None = None,
    ) -> None:
        self._access = Access(
            queue=queue,
            region_name=region_name,
            endpoint_url=endpoint_url,
            credentials=credentials or {},
        )
        self._body = _picked(body)
        self._write = writer_of(body_format)
        chosen = {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id}
        self._names = {name: _picked(by) for name, by in chosen.items() if by is not None}

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Share one client among the tasks in this process."""
        self._client = context.shared(f"sqs client {self._access.key}", self._access.client)
        self._url = ""
        self._clear()

    def execute(self, tup: Tuple) -> None:
        """Add a message to the next call, and make the call if it is full."""
        data = self._write(self._body(tup))
        if data is None:
            raise ValueError("the body is None, and SQS takes no message without one")
        if len(self._entries) == BATCH or self._bytes + len(data) > _BATCH_BYTES:
            self._send()
        names = {name: str(pick(tup)) for name, pick in self._names.items()}
        self._entries.append(
            {"Id": str(len(self._entries)), "MessageBody": data.decode("utf-8"), **names}
        )
        self._tuples.append(tup)
        self._bytes += len(data)

    def finish_batch(self) -> None:
        """Send the rest of the batch."""
        self._send()

    def _send(self) -> None:
        entries, tuples = self._entries, self._tuples
        self._clear()
        if not entries:
            return
        try:
            # Not in prepare: a server that is away must fail tuples, and not the whole task.
            self._url = self._url or self._access.url(self._client)
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except (BotoCoreError, ClientError, QueueLostError) as error:
            failed = dict.fromkeys(range(len(tuples)), words_of(error))
        else:
            failed = {
                int(entry["Id"]): f"{entry.get('Code')}: {entry.get('Message', '')}"
                for entry in answer.get("Failed", ())
            }
        for place, tup in enumerate(tuples):
            if place in failed:
                self.collector.fail(tup, f"{self._access.name} did not take it: {failed[place]}")
            else:
                self.collector.ack(tup)

    def _clear(self) -> None:
        self._entries: list[dict[str, str]] = []
        self._tuples: list[Tuple] = []
        self._bytes = 0


def _picked(by: Selector) -> Callable[[Tuple], Any]:
    return by if callable(by) else lambda tup: tup[by]
