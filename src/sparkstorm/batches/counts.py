"""Counts: the counters of a running topology's messages."""

from collections import Counter
from dataclasses import dataclass, field
from typing import final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.tasks.report import LogLine, log_line
from sparkstorm.texts.user_errors import users_line
from sparkstorm.verdicts import Failure

__all__ = ["Counts", "FirstFailures"]


@final
@dataclass(slots=True)
class Counts:
    """The counters of the coordinator behind :class:`sparkstorm.Statistics`."""

    emitted: int = 0
    retried: int = 0
    acked: int = 0
    failed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    rollbacks: int = 0
    batches: int = 0
    batch_secs: float = 0.0
    batch_messages: int = 0

    def note_planned(self, plan: BatchPlan) -> None:
        """Count the messages of a batch."""
        self.emitted += plan.messages
        self.retried += sum(p.load.count for p in plan.loads if p.attempt > 1)

    def note_batch(self, messages: int, secs: float) -> None:
        """Count a committed batch."""
        self.batches += 1
        self.batch_secs, self.batch_messages = secs, messages

    def note_failed(self, failed: FailedRoots) -> None:
        """Count failed attempts by their reason."""
        self.failed += len(failed)
        for failure, count in failed.counts():
            self.failures[failure.reason.value] += count


@final
class FirstFailures:
    """Logs each cause of failures once, when the cause is first seen; more would be noise.

    Errors of one class with different texts, since they quote the message, are mostly one cause: a
    few of them are logged.
    """

    _MOST = 100
    _MOST_ALIKE = 5

    def __init__(self) -> None:
        self._shown: set[tuple[str, str]] = set()
        self._alike: Counter[tuple[str, str]] = Counter()

    def show(self, failure: Failure) -> None:
        """Log the failure, unless the component has failed with the same message before."""
        cause = (failure.component, failure.message)
        if cause in self._shown or len(self._shown) >= self._MOST:
            return
        kind = (failure.component, failure.message.partition(":")[0])
        self._alike[kind] += 1
        if self._alike[kind] > self._MOST_ALIKE:
            return
        self._shown.add(cause)
        where = users_line(failure.traceback)
        text = f"a message failed: {failure}{where and f' ({where})'}"
        if self._alike[kind] == self._MOST_ALIKE:
            text += f"; further failures of the kind {kind[1]!r} are counted and not told"
        log_line(LogLine(failure.component, failure.task, "warning", text))
