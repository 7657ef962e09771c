"""One task's connection to an SQS queue."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from botocore.exceptions import BotoCoreError, ClientError

from sparkstorm.queues.queue import Delivery, Lease, QueueLostError
from sparkstorm.queues.sqs.access import BATCH, Access, batches, lost
from sparkstorm.queues.sqs.poller import Messages, Poller

__all__ = ["SQSQueue"]

_ERRORS = (BotoCoreError, ClientError)


@final
class SQSQueue:
    """Takes messages by long polls, and settles them by batch calls.

    Args:
        access: how to reach the queue.
        visibility_secs: how long a message is hidden from others, unless it is extended.
        poll_secs: how long a call waits for a first message.
    """

    def __init__(self, access: Access, *, visibility_secs: int, poll_secs: int) -> None:
        self._access = access
        self._visibility_secs = visibility_secs
        self._poll_secs = poll_secs
        self._poller: Poller | None = None
        self._client: Any = None
        self._url = ""

    @property
    def name(self) -> str:
        """The queue and its server."""
        return self._access.name

    @property
    def lease_secs(self) -> float | None:
        """The visibility time-out of this consumer."""
        return float(self._visibility_secs)

    @property
    def leases_survive(self) -> bool:
        """Receipt handles are valid for any connection."""
        return True

    def connect(self) -> None:
        """Make the clients, and look for the queue."""
        self._client = self._access.client()
        self._url = self._access.url(self._client)
        polling = self._access.client(self._poll_secs)
        self._poller = Poller(lambda limit: self._receive(polling, limit), self._return_unwanted)

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Fetch the answer of a long poll, and begin the next."""
        poller = self._polling()
        if limit:
            poller.ask(min(limit, BATCH))
        with _losses():
            messages = poller.answer(wait_secs)
        if not limit:  # a pause began meanwhile
            self._return_unwanted(messages)
            return []
        if len(messages) == BATCH and limit > BATCH:
            poller.ask(min(limit - BATCH, BATCH))  # while these are worked through
        return [self._delivery(message) for message in messages]

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Hide messages anew; handles that SQS no longer knows have ended."""
        return self._hide(leases, self._visibility_secs)

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Delete messages; an expired handle deletes nothing until the message comes again."""
        left: list[Lease] = []
        for some in batches(list(leases)):
            entries = [{"Id": str(n), "ReceiptHandle": lease} for n, lease in enumerate(some)]
            with _losses():
                answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            left += [some[int(entry["Id"])] for entry in answer.get("Failed", ())]
        return left

    def give_back(self, leases: Collection[Lease]) -> None:
        """Show messages to others at once; SQS counts their delivery all the same.

        The poll under way ends first: it would get the very messages that are given back.
        """
        late: Messages = []
        if self._poller is not None:
            with _losses():
                late = self._poller.answer(self._poll_secs + self._access.timeout_secs)
        self._hide([*leases, *(message["ReceiptHandle"] for message in late)], 0)

    def close(self) -> None:
        """Leave the poller; messages of its last call go back when the call ends."""
        if self._poller is not None:
            self._poller.leave()
        self._poller = None

    def _polling(self) -> Poller:
        if self._poller is None:
            raise QueueLostError("the connection is closed")
        return self._poller

    def _receive(self, client: Any, limit: int) -> Messages:
        answer = client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=limit,
            WaitTimeSeconds=self._poll_secs,
            VisibilityTimeout=self._visibility_secs,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages: Messages = answer.get("Messages") or []
        return messages

    def _return_unwanted(self, messages: Messages) -> None:
        with contextlib.suppress(QueueLostError):  # they come back by themselves, later
            self._hide([message["ReceiptHandle"] for message in messages], 0)

    def _hide(self, leases: Collection[Lease], secs: int) -> list[Lease]:
        """Set the visibility of messages; return those whose handles have ended.

        Raises:
            QueueLostError: SQS failed for some of them by its own fault.
        """
        ended: list[Lease] = []
        for some in batches(list(leases)):
            entries = [
                {"Id": str(n), "ReceiptHandle": lease, "VisibilityTimeout": secs}
                for n, lease in enumerate(some)
            ]
            with _losses():
                answer = self._client.change_message_visibility_batch(
                    QueueUrl=self._url, Entries=entries
                )
            for entry in answer.get("Failed", ()):
                if not entry.get("SenderFault"):
                    raise QueueLostError(f"visibility not changed: {entry.get('Code')}")
                ended.append(some[int(entry["Id"])])
        return ended

    def _delivery(self, message: dict[str, Any]) -> Delivery:
        system = message.get("Attributes", {})
        return Delivery(
            message_id=message["MessageId"],
            lease=message["ReceiptHandle"],
            body=message["Body"].encode(),
            deliveries=int(system.get("ApproximateReceiveCount", 0)),
            # Standard queues know groups, too, and keep no order of them.
            group=system.get("MessageGroupId") if self._access.is_fifo else None,
            attributes={**system, **_plain(message.get("MessageAttributes", {}))},
        )


def _plain(attributes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the values of a message's own attributes, without their types."""
    return {
        name: value.get("StringValue", value.get("BinaryValue"))
        for name, value in attributes.items()
    }


@contextmanager
def _losses() -> Iterator[None]:
    """Translate errors of AWS: the keeper connects again, and then learns of lasting causes."""
    try:
        yield
    except _ERRORS as error:
        raise lost(error) from error
