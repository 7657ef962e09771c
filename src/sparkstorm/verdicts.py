"""Verdicts: how a message can end, and why it failed. Frozen values, JSON between processes."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, final

__all__ = ["Failure", "Reason"]

_BRIEF_CHARS = 200


class Reason(StrEnum):
    """Why an attempt failed."""

    FAILED = "failed"
    """A bolt called ``fail``."""
    ERROR = "error"
    """A bolt raised an exception."""
    TIMEOUT = "timeout"
    """The tree stayed open too long."""
    LOST = "lost"
    """The batch, or a part of it, was lost with a process or cancelled."""
    EXPIRED = "expired"
    """The source no longer has the message."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why and where one attempt at a message failed.

    With ``final`` another attempt is of no use, so the message is given up at once. An attempt
    without ``counted`` is not the message's fault: its source did not answer, or the message was
    left out of a batch that failed with other messages. The ``attempt`` counts from 1. A spout sees
    the count over the message's life; before that, it is the count within a batch.
    """

    reason: Reason
    component: str = ""
    task: int = 0
    message: str = ""
    traceback: str = ""
    attempt: int = 1
    final: bool = False
    counted: bool = True

    def in_brief(self) -> "Failure":
        """Return the failure without its traceback, and with the beginning of a long message."""
        return replace(self, message=self.message[:_BRIEF_CHARS], traceback="")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON's types."""
        return {
            "reason": self.reason.value,
            "component": self.component,
            "task": self.task,
            "message": self.message,
            "traceback": self.traceback,
            "attempt": self.attempt,
            "final": self.final,
            "counted": self.counted,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Failure":
        """Build a failure from the result of :meth:`to_json`."""
        return cls(**{**data, "reason": Reason(data["reason"])})

    def __str__(self) -> str:
        where = f" in {self.component} (task {self.task})" if self.component else ""
        return (
            f"{self.reason.value}{where}: {self.message}"
            if self.message
            else (f"{self.reason.value}{where}")
        )
