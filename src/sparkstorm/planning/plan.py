"""The plan: frozen values that say where everything runs, read by every runner and worker."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, final

from sparkstorm.components.committer import CommitterBolt
from sparkstorm.components.spout import Spout
from sparkstorm.errors import InternalError
from sparkstorm.streams import DEFAULT_STREAM, Stream
from sparkstorm.topology.graph import AnyComponent, ComponentSpec, Topology
from sparkstorm.topology.grouping import Grouping
from sparkstorm.tuples import SYSTEM, TICK

if TYPE_CHECKING:  # sparkstorm/__init__.py tells why
    from sparkstorm.config import Config

__all__ = ["ACKER", "TICKS", "Level", "Plan", "Route", "Stage", "StageKind", "StreamKey"]

ACKER = "__acker"
"""The component id of the acker tasks, as in Storm."""


@final
@dataclass(frozen=True, slots=True, order=True)
class StreamKey:
    """A stream of a component."""

    component: str
    stream: str

    def __str__(self) -> str:
        return f"{self.component}/{self.stream}"


TICKS = StreamKey(SYSTEM, TICK)
"""The stream of tick tuples: no component declares it, every bolt may get it."""

_TICKS_STREAM = Stream("rate_secs double")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The destination of a stream's tuples: the tasks of one subscriber, by a grouping."""

    target: str
    tasks: range
    grouping: Grouping


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The bolts whose longest path from a spout has the same length."""

    index: int
    components: tuple[str, ...]
    stateful: bool


class StageKind(StrEnum):
    """The Spark operator of a stage."""

    READ = "read"
    MAP = "map"
    STATE = "state"
    ACK = "ack"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Levels that run together, between two exchanges."""

    kind: StageKind
    levels: tuple[int, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """All decisions about a topology before its run.

    Attributes:
        name: the topology's name.
        topology: the components themselves.
        config: the settings.
        partitions: partitions of every exchange.
        tasks: task numbers by component, including the ackers; from 1, in order of the sorted
            component ids, as in Storm.
        levels: the components in order of execution; ``levels[0]`` are the spouts.
        stages: the levels again, cut where data has to move.
        routes: the destinations of each stream's tuples.
        taps: streams whose tuples are shown in the driver.
    """

    name: str
    topology: Topology
    config: "Config"
    partitions: int
    tasks: Mapping[str, range]
    levels: tuple[Level, ...]
    stages: tuple[Stage, ...]
    routes: Mapping[StreamKey, tuple[Route, ...]]
    taps: frozenset[StreamKey] = frozenset()

    @cached_property
    def committers(self) -> tuple[str, ...]:
        """The committer bolts, sorted."""
        bolts = self.topology.bolts
        return tuple(sorted(s.id for s in bolts if isinstance(s.component, CommitterBolt)))

    @cached_property
    def to_driver(self) -> frozenset[StreamKey]:
        """The streams whose tuples reach the driver: tapped streams and staged values."""
        return self.taps | {StreamKey(name, DEFAULT_STREAM) for name in self.committers}

    @property
    def exactly_once(self) -> bool:
        """Whether a batch with a failure is rolled back whole."""
        return self.config.processing_guarantee == "exactly-once"

    @property
    def ackers(self) -> range:
        """The task numbers of the ackers; empty without tracking."""
        return self.tasks[ACKER]

    @property
    def tracked(self) -> bool:
        """Whether the ackers track trees at all."""
        return len(self.ackers) > 0

    @cached_property
    def stream_keys(self) -> tuple[StreamKey, ...]:
        """All streams, sorted, ticks last; a stream's position is its number in packets."""
        declared = sorted(
            StreamKey(spec.id, stream)
            for spec in self.topology.components.values()
            for stream in spec.streams
        )
        return (*declared, TICKS)

    @cached_property
    def stream_number(self) -> Mapping[StreamKey, int]:
        """The number of each stream."""
        return {key: number for number, key in enumerate(self.stream_keys)}

    def spec(self, component: str) -> ComponentSpec:
        """Return the component as added to the builder."""
        return self.topology.components[component]

    def settings(self, component: str) -> "Config":
        """Return the settings, with the component's own on top."""
        return self.config.override(dict(self.spec(component).settings))

    def stream(self, key: StreamKey) -> Stream:
        """Return the declaration of a stream."""
        if key == TICKS:
            return _TICKS_STREAM
        return self.topology.components[key.component].streams[key.stream]

    def component_of(self, task: int) -> str:
        """Return the component of a task."""
        return self._component_of_task[task]

    def index_of(self, task: int) -> int:
        """Return the place of a task within its component, from 0."""
        return task - self.tasks[self.component_of(task)].start

    def name_of(self, task: int) -> str:
        """Return a task as ``component/index``: a name that outlives the numbering of tasks."""
        return f"{self.component_of(task)}/{self.index_of(task)}"

    @cached_property
    def _component_of_task(self) -> Mapping[int, str]:
        return {task: name for name, tasks in self.tasks.items() for task in tasks}

    def home(self, task: int) -> int:
        """Return the partition of a task.

        A stateful task lives where its state is. So the partition of a stateful task depends on the
        component's id alone, while task numbers change with the topology.
        """
        return self._homes[task]

    @cached_property
    def _homes(self) -> Mapping[int, int]:
        homes = {}
        for name, tasks in self.tasks.items():
            spec = self.topology.components.get(name)
            stateful = spec is not None and spec.is_stateful
            # Python's own hash differs between processes; this one is the same in every run.
            first = zlib.crc32(name.encode()) if stateful else tasks.start
            homes.update({task: (first + i) % self.partitions for i, task in enumerate(tasks)})
        return homes

    def local_tasks(self, component: str, partition: int) -> list[int]:
        """Return the tasks of a component in a partition."""
        return [task for task in self.tasks[component] if self.home(task) == partition]

    def tick_secs(self, component: str) -> float | None:
        """Return the seconds between two tick tuples for a component's tasks; None for no ticks."""
        return self.settings(component).tick_tuple_freq_secs

    def for_workers(self) -> "Plan":
        """Return the plan without the objects only the driver calls: letter sinks, hosted spouts.

        Such objects may be impossible to pickle, or so large that every Spark task would carry them
        along.
        """
        specs = {
            name: replace(
                spec, settings=_without_sink(spec.settings), component=_worker_part(spec.component)
            )
            for name, spec in self.topology.components.items()
        }
        config = self.config.override({"dead_letter_sink": None})
        return replace(self, topology=Topology(specs), config=config)

    @property
    def rolls_back(self) -> bool:
        """Whether the engine may have to undo a batch: with exactly-once, or with state."""
        return self.exactly_once or any(stage.kind is StageKind.STATE for stage in self.stages)

    def stateful_components(self) -> tuple[str, ...]:
        """Return the components with state, sorted."""
        return tuple(sorted(spec.id for spec in self.topology.bolts if spec.is_stateful))


@final
class _HostedSpout(Spout):
    """The workers' stand-in for a spout that lives in the driver."""

    def next_tuple(self) -> None:
        raise InternalError("a hosted spout was asked in a worker: it lives in the driver")


def _worker_part(component: AnyComponent) -> AnyComponent:
    return _HostedSpout() if isinstance(component, Spout) else component


def _without_sink(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name != "dead_letter_sink"}
