"""What a running topology counts of its messages."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import final

from sparkstorm.delivery.plans import BatchPlan
from sparkstorm.execution.report import LogLine
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

    def note_failed(self, failures: Iterable[Failure]) -> None:
        """Count failed attempts by their reason."""
        for failure in failures:
            self.failed += 1
            self.failures[failure.reason.value] += 1


@final
class FirstFailures:
    """Tells of a failure's cause when it is first seen; once each, since more would be noise."""

    _MOST = 100

    def __init__(self, on_log: Callable[[LogLine], None]) -> None:
        self._on_log = on_log
        self._shown: set[tuple[str, str]] = set()

    def show(self, failure: Failure) -> None:
        """Log the failure, unless one of this component with this message was logged before."""
        cause = (failure.component, failure.message)
        if cause not in self._shown and len(self._shown) < self._MOST:
            self._shown.add(cause)
            text = f"a message failed: {failure}{_last_frame(failure.traceback)}"
            self._on_log(LogLine(failure.component, failure.task, "warning", text))


def _last_frame(trace: str) -> str:
    """Where the user's code raised, as the last frame of the traceback says it."""
    frames = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    return f" ({frames[-1]})" if frames else ""
