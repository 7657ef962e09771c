"""From the graph to levels: a bolt runs after all components it reads."""

from collections.abc import Mapping

from sparkstorm.planning.plan import Level
from sparkstorm.topology.graph import Topology

__all__ = ["levels_of"]


def levels_of(topology: Topology) -> tuple[Level, ...]:
    """Put each component on the level of its longest path from a spout; spouts are level 0."""
    depth: dict[str, int] = {}
    for name in topology.components:
        _depth(topology, name, depth)
    return tuple(_level(topology, depth, index) for index in range(max(depth.values()) + 1))


def _depth(topology: Topology, name: str, known: dict[str, int]) -> int:
    if name not in known:
        sources = {edge.source for edge in topology.components[name].subscriptions}
        known[name] = 1 + max((_depth(topology, source, known) for source in sources), default=-1)
    return known[name]


def _level(topology: Topology, depth: Mapping[str, int], index: int) -> Level:
    names = tuple(sorted(name for name, level in depth.items() if level == index))
    stateful = any(topology.components[name].is_stateful for name in names)
    return Level(index=index, components=names, stateful=stateful)
