"""The task context: a component's questions about itself and its neighbours."""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.components.processes import KeptProcess, NodeProcesses, ProcessSpec
from sparkstorm.components.wiring import Wiring
from sparkstorm.errors import InternalError
from sparkstorm.metrics import Histogram

if TYPE_CHECKING:  # sparkstorm/__init__.py tells why
    from sparkstorm.config import Config

__all__ = ["TaskContext"]

T = TypeVar("T")

_SHARED: dict[str, Any] = {}
# Reentrant, since a factory may ask for another shared object.
_SHARED_LOCK = threading.RLock()


@final
class TaskContext:
    """A task's knowledge of itself, handed to ``open`` and ``prepare``.

    Attributes:
        topology: the topology's name.
        component: the id of this component.
        task: the number of this task, unique in the topology, from 1.
        task_index: the number of this task within its component, from 0.
        config: the settings, with this component's own on top.
        sources: the streams this component reads, as pairs of component and stream.
        batch: the number of the running batch.
        batch_time: when the running batch was planned, in seconds since 1970. Bolts decide by this
            time: a repeated batch has the same time. The time never falls, not even over restarts,
            and does not jump with the machine's clock. :class:`sparkstorm.testing.ManualClock`
            moves it.
        wiring: the streams, fields and groupings around the component.
        clock: a spout's source of time, so that tests can advance it; in bolts the machine's clock.
    """

    __slots__ = (
        "_counters",
        "_observed",
        "_processes",
        "_tasks",
        "batch",
        "batch_time",
        "clock",
        "component",
        "config",
        "sources",
        "task",
        "task_index",
        "topology",
        "wiring",
    )

    def __init__(
        self,
        *,
        topology: str,
        component: str,
        task: int,
        tasks: Mapping[str, range],
        config: "Config",
        clock: Clock | None = None,
        sources: Iterable[tuple[str, str]] = (),
        wiring: Wiring | None = None,
    ) -> None:
        self.topology = topology
        self.component = component
        self.task = task
        self.task_index = task - tasks[component].start
        self.config = config
        self.sources = tuple(sources)
        self.batch = -1
        self.batch_time = 0.0
        self.clock: Clock = clock or SystemClock()
        self.wiring = wiring or Wiring()
        self._tasks = tasks
        self._processes: NodeProcesses | None = None
        self._counters: dict[str, float] = {}
        self._observed: dict[str, list[float]] = {}

    def component_tasks(self, component: str) -> list[int]:
        """Return the task numbers of a component, for :meth:`emit_direct`."""
        return list(self._tasks[component])

    def component_of(self, task: int) -> str:
        """Return the component of a task."""
        return next(name for name, tasks in self._tasks.items() if task in tasks)

    @property
    def tasks(self) -> Mapping[str, range]:
        """The task numbers of every component, the ackers' (``__acker``) among them."""
        return self._tasks

    def keep_process(self, spec: ProcessSpec) -> KeptProcess:
        """Attach to this task's kept process for the running batch; it is started if need be.

        The same process serves the task for the life of the run on this node, whichever worker
        process runs the task in a batch. Detach in ``finish_batch``.

        Raises:
            ProcessLostError: the process cannot be started.
        """
        name = f"{self.component}/{self.task_index}"
        return self._node().attach(name, spec, self.batch)

    def node_folder(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Return a folder for this run on this node; it goes with the run.

        Args:
            name: names it among those of the run; the same for all who ask for the same content.
            fill: called with an empty folder by whoever asks first.
        """
        return self._node().folder(name, fill)

    def _node(self) -> NodeProcesses:
        if self._processes is None:
            raise InternalError(f"{self!r} has no kept processes: none are there before it runs")
        return self._processes

    def set_processes(self, processes: NodeProcesses) -> None:
        """Say where kept processes are; called by the engine."""
        self._processes = processes

    def shared(self, name: str, factory: Callable[[], T]) -> T:
        """Return this worker process's object of a name; ``factory`` makes it once.

        Share costly objects that may be lost with the process: a connection pool, a model.
        """
        with _SHARED_LOCK:
            if name not in _SHARED:
                _SHARED[name] = factory()
            value: T = _SHARED[name]
            return value

    def count(self, name: str, amount: float = 1.0) -> None:
        """Add to a counter of your own, shown in the component's metrics.

        Raises:
            TypeError: the name is no text, or the amount no number.
            ValueError: the name has no UTF-8.
        """
        _check_name(name)
        self._counters[name] = self._counters.get(name, 0.0) + float(amount)

    def take_counters(self) -> tuple[tuple[str, float], ...]:
        """Return the counts since the last call and reset them; the engine calls it."""
        counters = tuple(sorted(self._counters.items()))
        self._counters.clear()
        return counters

    def observe(self, name: str, amount: float) -> None:
        """Add an amount to a histogram of your own, shown in the component's metrics.

        Args:
            name: the histogram's name.
            amount: seconds, bytes, or any other amount from 0 up.

        Raises:
            TypeError: the name is no text, or the amount no number.
            ValueError: the name has no UTF-8, or the amount is negative or not a number.
        """
        _check_name(name)
        value = float(amount)
        if not 0 <= value < math.inf:
            raise ValueError(f"histogram {name!r} takes finite amounts from 0 up, not {value}")
        self._observed.setdefault(name, []).append(value)

    def take_observed(self) -> dict[str, Histogram]:
        """Return the histograms since the last call and reset them; the engine calls it."""
        taken, self._observed = self._observed, {}
        return {name: Histogram.of(np.array(amounts)) for name, amounts in taken.items()}

    def __repr__(self) -> str:
        return f"TaskContext({self.component}#{self.task_index}, task {self.task})"


def _check_name(name: str) -> None:
    if not issubclass(type(name), str):
        raise TypeError(f"a metric is named by text, not by a {type(name).__name__}")
    name.encode()
