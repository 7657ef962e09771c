"""The TopologyBuilder: the fluent way to wire a topology."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, final

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.components.functions import fault_of_function
from sparkstorm.config import setting_name
from sparkstorm.errors import TopologyError
from sparkstorm.streams import DEFAULT_STREAM, Stream, declare
from sparkstorm.texts.showing import shown
from sparkstorm.topology.graph import AnyComponent, AnySpout, ComponentSpec, Subscription, Topology
from sparkstorm.topology.grouping import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    FieldsGrouping,
    FunctionGrouping,
    Global,
    Grouping,
    GroupingFunction,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
)
from sparkstorm.topology.validation import faults_of

__all__ = ["BoltDeclarer", "SpoutDeclarer", "TopologyBuilder"]


@dataclass(slots=True)
class _Draft:
    """A component while it is being declared."""

    id: str
    component: AnyComponent
    parallelism: int
    concurrency: int = 1
    tasks: int | None = None
    subscriptions: list[Subscription] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)


class _Declarer:
    """The options common to spouts and bolts."""

    def __init__(self, draft: _Draft) -> None:
        self._draft = draft

    def set_num_tasks(self, tasks: int) -> Self:
        """Give the component this many tasks instead of its parallelism."""
        self._draft.tasks = tasks
        return self

    def add_configuration(self, key: str, value: object) -> Self:
        """Override a setting for this component alone (see ``COMPONENT_KEYS``)."""
        self._draft.settings[setting_name(key)] = value
        return self


@final
class SpoutDeclarer(_Declarer):
    """Returned by :meth:`TopologyBuilder.set_spout`."""

    def set_max_spout_pending(self, limit: int) -> "SpoutDeclarer":
        """Bound the messages that each task of this spout may have pending."""
        return self.add_configuration("max_spout_pending", limit)


@final
class BoltDeclarer(_Declarer):
    """Returned by :meth:`TopologyBuilder.set_bolt`; subscribe with the groupings."""

    def shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> "BoltDeclarer":
        """Spread the tuples evenly over the tasks."""
        return self._subscribe(source, stream, Shuffle())

    def fields_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> "BoltDeclarer":
        """Send tuples with equal values in ``fields`` to the same task."""
        return self._subscribe(source, stream, FieldsGrouping(_names(fields)))

    def partial_key_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> "BoltDeclarer":
        """Send each key to the less loaded of two tasks: for skewed keys."""
        return self._subscribe(source, stream, PartialKey(_names(fields)))

    def all_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> "BoltDeclarer":
        """Send a copy to every task."""
        return self._subscribe(source, stream, All())

    def global_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> "BoltDeclarer":
        """Send everything to the task with the lowest number."""
        return self._subscribe(source, stream, Global())

    def none_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> "BoltDeclarer":
        """Accept any grouping; at present the same as shuffle."""
        return self._subscribe(source, stream, NoneGrouping())

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> "BoltDeclarer":
        """Let the emitter pick the task; the stream must be declared direct."""
        return self._subscribe(source, stream, Direct())

    def local_or_shuffle_grouping(
        self, source: str, stream: str = DEFAULT_STREAM
    ) -> "BoltDeclarer":
        """Prefer a task in the same partition, so no data moves; else shuffle."""
        return self._subscribe(source, stream, LocalOrShuffle())

    def custom_grouping(
        self,
        source: str,
        grouping: CustomGrouping | GroupingFunction,
        stream: str = DEFAULT_STREAM,
    ) -> "BoltDeclarer":
        """Let your own grouping choose the tasks.

        Args:
            source: the component to read.
            grouping: a :class:`CustomGrouping`, or a function of a tuple's values and the task
                numbers of this bolt, which returns some of these numbers. Equal arguments must give
                equal results.
            stream: the stream to read.

        Raises:
            TopologyError: the grouping is neither, or the function cannot be called so.
        """
        if isinstance(grouping, CustomGrouping):
            return self._subscribe(source, stream, Custom(grouping))
        if isinstance(grouping, type) or not callable(grouping):
            raise TopologyError(
                f"bolt {self._draft.id!r}: custom_grouping takes an instance of a CustomGrouping, "
                f"or a function, not {shown(grouping)}"
            )
        fault = fault_of_function("custom_grouping", grouping, ["values", "tasks"])
        if fault is not None:
            raise TopologyError(f"bolt {self._draft.id!r}: {fault}")
        return self._subscribe(source, stream, Custom(FunctionGrouping(grouping)))

    def _subscribe(self, source: str, stream: str, grouping: Grouping) -> "BoltDeclarer":
        edge = Subscription(source=source, stream=stream, grouping=grouping)
        self._draft.subscriptions.append(edge)
        return self


@final
class TopologyBuilder:
    """Collects components; :meth:`create_topology` checks and returns the topology."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    def set_spout(self, id: str, spout: AnySpout, parallelism: int = 1) -> SpoutDeclarer:
        """Add a source with a number of tasks."""
        draft = _Draft(id, spout, parallelism)
        self._drafts.append(draft)
        return SpoutDeclarer(draft)

    def set_bolt(
        self, id: str, bolt: AnyBolt, parallelism: int = 1, concurrency: int = 1
    ) -> BoltDeclarer:
        """Add a step with a number of tasks.

        Args:
            id: the bolt's name, unique in the topology.
            bolt: an instance; each task gets a copy.
            parallelism: number of tasks.
            concurrency: how many tuples a task may execute at the same time, for bolts that wait
                (in threads, or in coroutines if ``execute`` is ``async``).
        """
        draft = _Draft(id, bolt, parallelism, concurrency)
        self._drafts.append(draft)
        return BoltDeclarer(draft)

    def create_topology(self) -> Topology:
        """Check everything and return the topology.

        Raises:
            TopologyError: with all faults in ``faults``.
        """
        specs, faults = [], []
        for draft in self._drafts:
            try:
                specs.append(_finish(draft))
            except TopologyError as error:
                faults += [f"component {draft.id!r}: {fault}" for fault in error.faults]
        faults += faults_of(specs, complete=not faults)
        if faults:
            raise TopologyError(faults)
        return Topology({spec.id: spec for spec in specs})


def _finish(draft: _Draft) -> ComponentSpec:
    # An object of a wrong type has no outputs; validation names its type later.
    streams: dict[str, Stream] = declare(getattr(draft.component, "outputs", ()))
    return ComponentSpec(
        id=draft.id,
        component=draft.component,
        parallelism=draft.parallelism if draft.tasks is None else draft.tasks,
        concurrency=draft.concurrency,
        streams=streams,
        subscriptions=tuple(draft.subscriptions),
        settings=_settings(draft),
    )


def _settings(draft: _Draft) -> dict[str, object]:
    """Return the component's own settings, overridden by those from ``add_configuration``."""
    component = draft.component
    own = component.component_configuration() if isinstance(component, AnyBolt) else {}
    return {**{setting_name(key): value for key, value in own.items()}, **draft.settings}


def _names(fields: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(fields, str):
        return tuple(part.strip() for part in fields.split(",") if part.strip())
    return tuple(fields)
