"""Metrics: a running topology's numbers, as values that add up; every view reads them.

:mod:`histogram` has how long things took, :mod:`task_metrics` the counts of a task,
:mod:`statistics` the whole topology at one moment, :mod:`windows` the last ten minutes, three
hours, and the last day.
"""

from sparkstorm.metrics.histogram import Histogram
from sparkstorm.metrics.statistics import PartitionStatistics, Statistics, skipped_in
from sparkstorm.metrics.task_metrics import (
    InputMetrics,
    OutputMetrics,
    TaskMetrics,
    merge_task_metrics,
)
from sparkstorm.metrics.timing import BatchTiming, Pace
from sparkstorm.metrics.windows import Window, Windows

__all__ = [
    "BatchTiming",
    "Histogram",
    "InputMetrics",
    "OutputMetrics",
    "Pace",
    "PartitionStatistics",
    "Statistics",
    "TaskMetrics",
    "Window",
    "Windows",
    "merge_task_metrics",
    "skipped_in",
]
