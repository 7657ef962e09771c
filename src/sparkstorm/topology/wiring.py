"""The wiring of a component, as the component may see it."""

from collections.abc import Mapping

from sparkstorm.components.wiring import Edge, Wiring
from sparkstorm.topology.graph import ComponentSpec
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


def wiring_of(components: Mapping[str, ComponentSpec], component: str) -> Wiring:
    """Return how a component of a topology is wired."""
    spec = components[component]
    targets: dict[str, dict[str, Edge]] = {name: {} for name in spec.streams}
    for reader in components.values():
        for one in reader.subscriptions:
            if one.source == component and one.stream in targets:
                targets[one.stream][reader.id] = _edge(one.grouping)
    sources: dict[str, dict[str, Edge]] = {}
    fields: dict[str, dict[str, tuple[str, ...]]] = {}
    for one in spec.subscriptions:
        sources.setdefault(one.source, {})[one.stream] = _edge(one.grouping)
        names = components[one.source].streams[one.stream].names
        fields.setdefault(one.source, {})[one.stream] = names
    return Wiring(
        streams={name: stream.names for name, stream in spec.streams.items()},
        targets=targets,
        sources=sources,
        source_fields=fields,
    )


def _edge(grouping: Grouping) -> Edge:
    fields = grouping.fields if isinstance(grouping, FieldsGrouping | PartialKey) else ()
    return Edge(grouping=_NAMES[type(grouping)], fields=fields)
