"""Job results: the rows that a batch's job returned, and the words of its tasks beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.tasks.report import Report
from sparkstorm.tasks.state_runs import StateRuns

__all__ = ["JobResult"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of one job of a batch.

    Attributes:
        rows: the packets for the driver: those of the ackers, and of tapped components.
        reports: one for each task, the last if the task ran several times. They count when the
            batch is committed: if Spark cannot commit, the batch is run and reported once more.
        runs: the runs of stages with state whose state Spark could commit.
        secs: how long the job took.
    """

    rows: Sequence[bytes] = ()
    reports: Sequence[Report] = ()
    runs: StateRuns = field(default_factory=StateRuns)
    secs: float = 0.0
