"""Timings: where the time of a batch went, and whether batches go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

__all__ = ["BatchTiming", "Pace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """Where the time of a committed batch went, in seconds.

    Attributes:
        number: the batch's number.
        messages: its messages.
        at: when it was planned, in seconds since 1970.
        plan_secs: the time that planning took, a part of the next.
        start_secs: from its plan until Spark started the batch.
        job_secs: the last run of its job.
        commit_secs: from the job's end until Spark's commit was known.
        busiest: the time of the busiest task of each component, the ackers among them. All
            components of a level wait for the slowest.
    """

    number: int
    messages: int
    at: float
    plan_secs: float = 0.0
    start_secs: float = 0.0
    job_secs: float = 0.0
    commit_secs: float = 0.0
    busiest: Mapping[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Whether batches go on.

    Attributes:
        polled_secs: for how long the sources were not asked for messages.
        spouts: for how long each spout was not called; a spout in a long call is not called.
        committed_secs: for how long no batch was committed.
        waiting: failed messages that wait for their next attempt.
    """

    polled_secs: float
    committed_secs: float
    waiting: int
    spouts: Mapping[str, float] = field(default_factory=dict)
