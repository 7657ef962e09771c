"""Run a whole topology on fixed input and look at all tuples that its components emitted."""

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
    """The result of a run: all emitted tuples, by component, and the final statistics."""

    emitted: Mapping[str, list[Emitted]]
    statistics: Statistics

    def __getitem__(self, component: str) -> list[Emitted]:
        return self.emitted[component]

    def values(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """Return the values that a component emitted to a stream, in order."""
        return [values for name, values in self.emitted[component] if name == stream]


def complete_topology(
    topology: Topology,
    *,
    mock_sources: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    config: Config | None = None,
    partitions: int = 2,
    clock: Clock | None = None,
) -> Completed:
    """Run a topology in this process until every message has ended; return all emitted tuples.

    Args:
        topology: the topology.
        mock_sources: for a spout's id, rows to emit instead of the spout's (Storm's MockedSources).
        config: the settings.
        partitions: how many partitions to play; results must not depend on the number.
        clock: the time; by default a clock that stands still.

    Raises:
        TopologyError: ``mock_sources`` names a component that is no spout of the topology.
    """
    # Exactly-once repeats batches as they were decided, so mock sources must read rows again.
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
    """Return the topology with fixed rows in the place of some spouts.

    Args:
        topology: the topology.
        sources: rows, by the spout's id.
        replayable: whether the rows may be read again, as exactly-once requires.
    """
    specs = dict(topology.components)
    for name, rows in sources.items():
        spec = specs.get(name)
        if spec is None or not spec.is_spout:
            spouts = ", ".join(spec.id for spec in topology.spouts)
            raise TopologyError(f"{name!r} is not a spout of the topology; its spouts: {spouts}")
        kind = LogSpout if replayable else FixedSpout
        specs[name] = replace(spec, component=kind(rows, dict(spec.streams)))
    return Topology(specs)
