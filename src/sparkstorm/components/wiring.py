"""How a component is wired: its streams, and who reads and feeds it; plain values."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

from sparkstorm.streams import DEFAULT_STREAM

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

    def keeps_together(self, keys: Collection[str]) -> bool:
        """Whether tuples with the same keys go to the same task.

        A grouping of the user's own is taken at its word.

        >>> Edge(grouping="FIELDS", fields=("shop",)).keeps_together(["shop", "day"])
        True
        >>> Edge(grouping="SHUFFLE").keeps_together(["shop"])
        False
        """
        if self.grouping == "FIELDS":
            return set(self.fields) <= set(keys)
        is_partial_key = self.grouping == "CUSTOM_SERIALIZED" and bool(self.fields)
        return self.grouping not in ("SHUFFLE", "LOCAL_OR_SHUFFLE", "NONE") and not is_partial_key


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

    def inputs(self) -> Iterator[tuple[str, Edge, tuple[str, ...]]]:
        """Yield each stream that the component reads: its name, the edge and the fields."""
        for component, streams in self.sources.items():
            for stream, edge in streams.items():
                name = component if stream == DEFAULT_STREAM else f"{component}/{stream}"
                yield name, edge, self.source_fields[component][stream]
