"""The SQSSpout: messages of an SQS queue."""

from typing import final

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.queues.decoding import Decoder
from sparkstorm.queues.queue import Queue
from sparkstorm.queues.spout import QueueSpout
from sparkstorm.queues.sqs.access import Access
from sparkstorm.queues.sqs.queue import SQSQueue

__all__ = ["SQSSpout"]

_LONGEST_POLL_SECS = 20
_LONGEST_VISIBILITY_SECS = 43_200


@final
class SQSSpout(QueueSpout):
    """Emits the messages of an SQS queue, and deletes them when they are acked.

    A message stays hidden from others while it is under way: its visibility is extended, for up to
    the twelve hours that SQS allows. At a shutdown the visibility is set to 0, so others get the
    message at once. Of a FIFO queue one message of each group is under way at a time.

    ``decode=WithDelivery(…)`` sees the number of deliveries, the group and the attributes.

    Args:
        queue: the queue's name, or its URL.
        region_name: the region. Unset: as boto3 finds it.
        endpoint_url: another server than Amazon's.
        credentials: ``aws_access_key_id``, ``aws_secret_access_key``, ``aws_session_token`` or
            ``profile_name``, as boto3 names them; never shown. Unset: as boto3 finds them.
        visibility_secs: after how many seconds others get a message whose process was killed.
        poll_secs: how long a call waits for a first message, up to 20 seconds. A shutdown waits
            for the end of the call.
        timeout_secs: an answer that takes longer, beside its own waiting, is given up: a connection
            may be open and carry nothing.
        fields: the declared stream.
        decode: how a body becomes values; see :class:`~sparkstorm.queues.spout.QueueSpout`.
        max_pending: the most messages that a task holds at once.
        ends_after_idle_secs: the spout ends once the queue was idle for so long.

    Raises:
        ConfigError: an argument does not fit.
    """

    default_pending = 10_000
    max_waiting = 2000

    def __init__(
        self,
        queue: str,
        *,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        credentials: dict[str, str] | None = None,
        visibility_secs: int = 30,
        poll_secs: int = 5,
        timeout_secs: float = 5.0,
        fields: str = "body",
        decode: Decoder = "string",
        max_pending: int | None = None,
        ends_after_idle_secs: float | None = None,
    ) -> None:
        super().__init__(
            fields=fields,
            decode=decode,
            max_pending=max_pending,
            ends_after_idle_secs=ends_after_idle_secs,
        )
        if not 1 <= visibility_secs <= _LONGEST_VISIBILITY_SECS:
            raise ConfigError(f"visibility_secs is {visibility_secs}: SQS takes 1 to 43200")
        if not 0 <= poll_secs <= _LONGEST_POLL_SECS:
            raise ConfigError(f"poll_secs is {poll_secs}: SQS takes 0 to 20")
        if not timeout_secs > 0:
            raise ConfigError(f"timeout_secs is {timeout_secs}: give a number above 0")
        self._access = Access(
            queue=queue,
            region_name=region_name,
            endpoint_url=endpoint_url,
            credentials=credentials or {},
            timeout_secs=timeout_secs,
        )
        self._visibility_secs = visibility_secs
        self._poll_secs = poll_secs

    def make_queue(self, config: Config, context: TaskContext) -> Queue:
        """Return the task's own connection."""
        return SQSQueue(
            self._access, visibility_secs=self._visibility_secs, poll_secs=self._poll_secs
        )
