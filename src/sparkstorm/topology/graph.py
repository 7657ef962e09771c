"""The topology as a value: components, their streams and subscriptions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, final

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.components.spout import PartitionedSpout, Spout
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.streams import Stream
from sparkstorm.topology.grouping import Grouping

__all__ = ["AnyComponent", "AnySpout", "ComponentSpec", "Subscription", "Topology"]

AnySpout: TypeAlias = Spout | PartitionedSpout
AnyComponent: TypeAlias = AnySpout | AnyBolt


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One edge: a bolt reads a stream of a component, by a grouping."""

    source: str
    stream: str
    grouping: Grouping


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """One component as added to the builder."""

    id: str
    component: AnyComponent
    parallelism: int = 1
    concurrency: int = 1
    streams: Mapping[str, Stream] = field(default_factory=dict)
    subscriptions: tuple[Subscription, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_spout(self) -> bool:
        """Whether the component is a source."""
        return isinstance(self.component, Spout | PartitionedSpout)

    @property
    def is_stateful(self) -> bool:
        """Whether the component's tasks keep state in Spark's state store."""
        component = self.component
        return isinstance(component, StatefulBolt) or (
            isinstance(component, AnyBolt) and component.stateful
        )


@final
class Topology:
    """A validated directed graph of spouts and bolts; made by :class:`TopologyBuilder`."""

    __slots__ = ("components",)

    def __init__(self, components: Mapping[str, ComponentSpec]) -> None:
        self.components: Mapping[str, ComponentSpec] = MappingProxyType(dict(components))

    # A mapping proxy cannot be pickled, so the copy builds its own.
    def __reduce__(self) -> tuple[type["Topology"], tuple[dict[str, ComponentSpec]]]:
        return Topology, (dict(self.components),)

    @property
    def spouts(self) -> tuple[ComponentSpec, ...]:
        """The sources, in the order of the builder's calls."""
        return tuple(spec for spec in self.components.values() if spec.is_spout)

    @property
    def bolts(self) -> tuple[ComponentSpec, ...]:
        """The steps, in the order of the builder's calls."""
        return tuple(spec for spec in self.components.values() if not spec.is_spout)

    def subscribers(self, source: str, stream: str) -> Iterator[tuple[ComponentSpec, Subscription]]:
        """Yield the readers of a stream, each with its edge, in order of the builder's calls."""
        for spec in self.components.values():
            for subscription in spec.subscriptions:
                if (subscription.source, subscription.stream) == (source, stream):
                    yield spec, subscription

    def __repr__(self) -> str:
        return f"Topology({', '.join(self.components)})"
