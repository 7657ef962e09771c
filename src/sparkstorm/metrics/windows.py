"""Windows: the metrics of the last ten minutes, three hours and the last day."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.metrics.task_metrics import TaskMetrics

__all__ = ["Window", "Windows"]

_LENGTHS = (600, 10_800, 86_400)
"""Storm's windows, in seconds."""

_BUCKETS = 20
"""Each window is cut into so many parts, as Storm's ``num.stat.buckets``."""

News = Sequence[tuple[str, int, TaskMetrics]]


@final
@dataclass(slots=True)
class Window:
    """The metrics of a window, or of a part of one.

    Attributes:
        components: everything, by component.
        tasks: the plain counts, by component and task: a thousand tasks must not keep a thousand
            histograms for each part of each window.
    """

    components: dict[str, TaskMetrics] = field(default_factory=dict)
    tasks: dict[tuple[str, int], TaskMetrics] = field(default_factory=dict)

    def add(self, component: str, task: int, counts: TaskMetrics) -> None:
        """Add the counts of a task."""
        self.components[component] = self.components.get(component, TaskMetrics()) + counts
        key = (component, task)
        self.tasks[key] = self.tasks.get(key, TaskMetrics()) + counts.totals()

    def include(self, other: "Window") -> None:
        """Add all of another window."""
        for name, counts in other.components.items():
            self.components[name] = self.components.get(name, TaskMetrics()) + counts
        for key, counts in other.tasks.items():
            self.tasks[key] = self.tasks.get(key, TaskMetrics()) + counts

    @classmethod
    def union(cls, parts: "Iterable[Window]") -> "Window":
        """Return the sum of several windows."""
        whole = cls()
        for part in parts:
            whole.include(part)
        return whole


@final
class Windows:
    """Rolling sums over Storm's windows. Methods take the time, on any clock that never falls."""

    def __init__(self, now: float) -> None:
        self._rings = {length: _Ring(length, now) for length in _LENGTHS}
        self._all = Window()

    def add(self, news: News, now: float) -> None:
        """Add the counts of a batch's tasks."""
        for ring in self._rings.values():
            ring.turn(now)
        batch = Window()
        for component, task, counts in news:
            batch.add(component, task, counts)
        for part in (self._all, *(ring.newest for ring in self._rings.values())):
            part.include(batch)

    def last(self, secs: int | None, now: float) -> Window:
        """Return the metrics of the last 600, 10,800 or 86,400 seconds; of all time for None.

        Raises:
            KeyError: there is no window of this length.
        """
        if secs is None:
            return Window.union([self._all])
        ring = self._rings[secs]
        ring.turn(now)
        return Window.union(ring.parts)


@final
class _Ring:
    """The parts of a window, the newest last."""

    def __init__(self, length: int, now: float) -> None:
        self._step = length / _BUCKETS
        self._began = now
        # The newest part is not yet whole, so one more: a window is never shorter than its name.
        self.parts = deque([Window()], maxlen=_BUCKETS + 1)

    @property
    def newest(self) -> Window:
        return self.parts[-1]

    def turn(self, now: float) -> None:
        """Begin new parts, as many as the time has passed."""
        passed = int((now - self._began) / self._step)
        self._began += passed * self._step
        self.parts.extend(Window() for _ in range(min(passed, _BUCKETS + 1)))
