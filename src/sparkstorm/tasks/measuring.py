"""Measuring: from the clock readings of a batch to the metrics of a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.metrics import Histogram, InputMetrics
from sparkstorm.packets.inbox import ACKED, FAILED, Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.collectors.stopwatch import Stopwatch

__all__ = ["Timings", "inputs_of"]

Marks = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class Timings:
    """How long calls of ``execute`` took, in groups of consecutive tuples, none of two packets.

    Attributes:
        firsts: the position of each group's first tuple, ascending.
        counts: the number of its tuples.
        begins: when the first was begun.
        secs: the time of each tuple, alike for all of a group.
        late_acks: the tuples acked outside of their own call, each with the time.
    """

    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    begins: NDArray[np.float64]
    secs: NDArray[np.float64]
    late_acks: Sequence[tuple[int, float]] = ()

    @classmethod
    def of_calls(cls, secs: Mapping[int, float]) -> "Timings":
        """Return the timings of single calls, by the positions of their tuples."""
        firsts = np.array(sorted(secs), np.int64)
        each = np.array([secs[index] for index in firsts.tolist()])
        return cls(firsts, np.ones_like(firsts), np.zeros_like(each), each)

    @classmethod
    def of_readings(cls, watch: Stopwatch, late_acks: Sequence[tuple[int, float]]) -> "Timings":
        """Return the timings by a stopwatch."""
        marks, times = np.array(watch.marks, np.int64), np.array(watch.times)
        counts, spent = np.diff(marks), np.diff(times)
        kept = np.flatnonzero(counts)  # between packets there is no tuple
        secs = spent[kept] / counts[kept]
        return cls(marks[kept], counts[kept], times[kept], secs, late_acks)

    def execute(self, part: slice) -> Histogram:
        """Return the seconds inside of ``execute`` for a packet's tuples."""
        mine = self._groups(part)
        return Histogram.of(self.secs[mine], self.counts[mine])

    def process(self, part: slice, acked: Marks) -> Histogram:
        """Return the seconds until the ack for a packet's acked tuples."""
        mine = self._groups(part)
        if mine.start == mine.stop:
            return Histogram()
        late = {i: at for i, at in self.late_acks if part.start <= i < part.stop}
        own = acked.copy()
        own[[index - part.start for index in late]] = False
        in_time = np.add.reduceat(own, self.firsts[mine] - part.start, dtype=np.int64)
        waited = np.array([at - self._begin(index) for index, at in late.items()])
        return Histogram.of(self.secs[mine], in_time) + Histogram.of(waited)

    def of(self, index: int) -> tuple[float | None, float | None]:
        """Return when a tuple's call began, and its seconds; None for what nobody has measured."""
        group = int(np.searchsorted(self.firsts, index, side="right")) - 1
        if group < 0 or index >= self.firsts[group] + self.counts[group]:
            return None, None
        return (self._begin(index) if self.begins[group] else None), float(self.secs[group])

    def _groups(self, part: slice) -> slice:
        start, stop = np.searchsorted(self.firsts, [part.start, part.stop]).tolist()
        return slice(start, stop)

    def _begin(self, index: int) -> float:
        group = int(np.searchsorted(self.firsts, index, side="right")) - 1
        return float(self.begins[group] + (index - self.firsts[group]) * self.secs[group])


def inputs_of(plan: Plan, inbox: Inbox, timings: Timings) -> dict[tuple[str, str], InputMetrics]:
    """Return the metrics of the received tuples, by the component and stream they came from."""
    found: dict[tuple[str, str], InputMetrics] = {}
    status = np.frombuffer(bytes(inbox.status), np.uint8)
    start = 0
    for stream, count in inbox.parts():
        part = slice(start, start + count)
        acked = status[part] == ACKED
        key = plan.stream_keys[stream]
        counts = InputMetrics(
            executed=count,
            acked=int(np.count_nonzero(acked)),
            failed=int(np.count_nonzero(status[part] == FAILED)),
            execute=timings.execute(part),
            process=timings.process(part, acked),
        )
        name = (key.component, key.stream)
        found[name] = found.get(name, InputMetrics()) + counts
        start += count
    return found
