"""What a plan tells a task of the topology around it."""

from sparkstorm.components.wiring import Edge, Wiring
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.topology.grouping import (
    All,
    Custom,
    Direct,
    FieldsGrouping,
    Global,
    Grouping,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
)

__all__ = ["wiring_of"]

_NAMES: dict[type, str] = {
    All: "ALL",
    Custom: "CUSTOM_SERIALIZED",
    Direct: "DIRECT",
    FieldsGrouping: "FIELDS",
    Global: "GLOBAL",
    LocalOrShuffle: "LOCAL_OR_SHUFFLE",
    NoneGrouping: "NONE",
    PartialKey: "CUSTOM_SERIALIZED",
    Shuffle: "SHUFFLE",
}
"""Storm's names; its own partial key grouping is a custom one, too."""


def wiring_of(plan: Plan, component: str) -> Wiring:
    """Return how a component is wired."""
    spec = plan.spec(component)
    sources: dict[str, dict[str, Edge]] = {}
    fields: dict[str, dict[str, tuple[str, ...]]] = {}
    for one in spec.subscriptions:
        sources.setdefault(one.source, {})[one.stream] = _edge(one.grouping)
        names = plan.stream(StreamKey(one.source, one.stream)).names
        fields.setdefault(one.source, {})[one.stream] = names
    return Wiring(
        streams={name: stream.names for name, stream in spec.streams.items()},
        targets={
            name: {
                route.target: _edge(route.grouping)
                for route in plan.routes[StreamKey(component, name)]
            }
            for name in spec.streams
        },
        sources=sources,
        source_fields=fields,
    )


def _edge(grouping: Grouping) -> Edge:
    fields = grouping.fields if isinstance(grouping, FieldsGrouping) else ()
    return Edge(grouping=_NAMES[type(grouping)], fields=fields)
