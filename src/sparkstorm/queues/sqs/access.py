"""Access to one SQS queue: its address, credentials and clients, and what errors of AWS mean."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import boto3
from botocore.config import Config as ClientConfig
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from sparkstorm.errors import EnvironmentFault
from sparkstorm.queues.queue import QueueLostError
from sparkstorm.texts.credentials import Secret
from sparkstorm.texts.user_errors import words_of

__all__ = ["BATCH", "Access", "batches", "lost"]

BATCH = 10
"""The most entries of a batch call."""

_SECRET = {"aws_secret_access_key", "aws_session_token"}
_MISSING = {"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "InvalidAddress"}
_REFUSED = {
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach a queue; credentials are never shown.

    Attributes:
        queue: the queue's name, or its URL.
        region_name: the region; None: as boto3 finds it.
        endpoint_url: another server than Amazon's.
        credentials: boto3's arguments for a session: ``aws_access_key_id``,
            ``aws_secret_access_key``, ``aws_session_token``, ``profile_name``. Empty: as boto3
            finds them.
        timeout_secs: an answer that takes longer is given up: a connection may be open and carry
            nothing.
    """

    queue: str
    region_name: str | None = None
    endpoint_url: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_secs: float = 5.0

    def __post_init__(self) -> None:
        # A profile's name is no secret, and may be a common word.
        kept = {n: Secret(v) if n in _SECRET else v for n, v in self.credentials.items()}
        object.__setattr__(self, "credentials", kept)

    @property
    def name(self) -> str:
        """The queue and its server, for people."""
        at = f" at {self.endpoint_url}" if self.endpoint_url else ""
        return f"SQS queue {self.queue}{at}"

    @property
    def key(self) -> str:
        """A name for these very settings in this process, for shared clients; shows no secret."""
        return f"{self!r} {hash(tuple(sorted(self.credentials.items())))}"

    @property
    def is_fifo(self) -> bool:
        """Whether the queue keeps the order of groups."""
        return self.queue.endswith(".fifo")

    def client(self, poll_secs: float = 0.0) -> Any:
        """Return a client; its calls are tried twice, since the caller tries again itself.

        Args:
            poll_secs: how long the server may wait before it answers.

        Raises:
            EnvironmentFault: no region, or no such profile.
        """
        options = ClientConfig(
            connect_timeout=self.timeout_secs,
            read_timeout=poll_secs + self.timeout_secs,
            retries={"mode": "standard", "total_max_attempts": 2},
            tcp_keepalive=True,
        )
        # Plain texts: what boto3 keeps must not be our subclass of str.
        plain = {name: "".join(value) for name, value in self.credentials.items()}
        with self._faults():
            session = boto3.session.Session(region_name=self.region_name, **plain)
            return session.client("sqs", endpoint_url=self.endpoint_url, config=options)

    def url(self, client: Any) -> str:
        """Return the queue's URL, after a look whether the queue is there and may be used.

        Raises:
            EnvironmentFault: no such queue, or the credentials are missing or refused.
            QueueLostError: no answer.
        """
        with self._faults():
            url: str = self.queue
            if "://" not in url:
                url = client.get_queue_url(QueueName=url)["QueueUrl"]
            client.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
            return url

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except NoRegionError as error:
            raise EnvironmentFault(
                f"{self.name} has no region: give region_name, or set AWS_DEFAULT_REGION"
            ) from error
        except (NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
            raise EnvironmentFault(
                f"{self.name} has no credentials ({words_of(error)}): give aws_access_key_id and "
                f"aws_secret_access_key, or set them up as boto3 finds them"
            ) from error
        except ClientError as error:
            raise self._refusal(error) from error
        except (BotoConnectionError, HTTPClientError) as error:
            raise lost(error) from error
        except BotoCoreError as error:
            raise EnvironmentFault(f"{self.name} cannot be used: {words_of(error)}") from error

    def _refusal(self, error: ClientError) -> Exception:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _MISSING:
            return EnvironmentFault(
                f"{self.name} does not exist: create the queue, or mend its name and region"
            )
        if code in _REFUSED:
            return EnvironmentFault(
                f"{self.name} refuses the credentials ({words_of(error)}): mend them, or the "
                f"queue's policy"
            )
        return lost(error)


def lost(error: BaseException) -> QueueLostError:
    """Return an error of AWS as one that a later try may mend."""
    return QueueLostError(words_of(error))


def batches(items: list[Any]) -> Iterator[list[Any]]:
    """Yield pieces that fit into one batch call."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
