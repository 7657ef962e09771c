"""How a component is wired: its streams, and who reads and feeds it; plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

__all__ = ["Edge", "Wiring"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A stream on its way from one component to another.

    Attributes:
        grouping: its type by Storm's name: ``SHUFFLE``, ``FIELDS``, ``ALL`` and so on.
        fields: the fields of the grouping, if it has any.
    """

    grouping: str
    fields: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What a task may know of the topology around it.

    Attributes:
        streams: the fields of each stream that this component declares.
        targets: for each of them its readers, and how they read.
        sources: for each component and stream that this one reads, how it does.
        source_fields: the fields of these streams.
    """

    streams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Edge]] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, Edge]] = field(default_factory=dict)
    source_fields: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
