"""Run a whole topology on fixed input and look at everything that it emitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from sparkstorm.clock import Clock
from sparkstorm.config import Config
from sparkstorm.errors import TopologyError
from sparkstorm.local.runner import LocalRunner
from sparkstorm.metrics import Statistics
from sparkstorm.planning.plan import StreamKey
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.sources import LogSpout
from sparkstorm.testing.spouts import FixedSpout
from sparkstorm.topology.graph import Topology

__all__ = ["Completed", "Emitted", "complete_topology", "with_sources"]

Emitted: TypeAlias = tuple[str, tuple[Any, ...]]
"""(stream, values) of one emitted tuple."""


@final
@dataclass(frozen=True, slots=True)
class Completed:
    """What a topology did: everything emitted, by component, and the final statistics."""

    emitted: Mapping[str, list[Emitted]]
    statistics: Statistics

    def __getitem__(self, component: str) -> list[Emitted]:
        return self.emitted[component]

    def values(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """The values that a component emitted to a stream, in order."""
        return [values for name, values in self.emitted[component] if name == stream]


def complete_topology(
    topology: Topology,
    *,
    mock_sources: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    config: Config | None = None,
    partitions: int = 2,
    clock: Clock | None = None,
) -> Completed:
    """Run a topology in this process until every message has ended; return what it emitted.

    Args:
        topology: the topology.
        mock_sources: for a spout's id, the rows that it emits instead (Storm's MockedSources).
        config: the settings.
        partitions: how many partitions to play; the results must not depend on it.
        clock: the time; by default one that stands still.
    """
    once = config is not None and config.processing_guarantee == "exactly-once"
    topology = with_sources(topology, mock_sources or {}, replayable=once)
    emitted: dict[str, list[Emitted]] = {name: [] for name in topology.components}

    def on_tap(key: StreamKey, task: int, rows: list[tuple[Any, ...]]) -> None:
        emitted[key.component] += [(key.stream, tuple(row)) for row in rows]

    with LocalRunner(
        topology,
        config=config,
        partitions=partitions,
        taps=tuple(topology.components),
        clock=clock or ManualClock(),
        on_tap=on_tap,
    ) as runner:
        statistics = runner.run_until_idle()
    return Completed(emitted, statistics)


def with_sources(
    topology: Topology,
    sources: Mapping[str, Sequence[Sequence[Any]]],
    *,
    replayable: bool = False,
) -> Topology:
    """Return the topology with some spouts replaced by fixed rows, ``replayable`` if need be."""
    specs = dict(topology.components)
    for name, rows in sources.items():
        spec = specs.get(name)
        if spec is None or not spec.is_spout:
            spouts = ", ".join(spec.id for spec in topology.spouts)
            raise TopologyError(f"{name!r} is not a spout of the topology: there are {spouts}")
        kind = LogSpout if replayable else FixedSpout
        specs[name] = replace(spec, component=kind(rows, dict(spec.streams)))
    return Topology(specs)
