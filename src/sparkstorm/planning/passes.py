"""The passes that turn a topology into a plan, in the order in which they run.

1. number the tasks            ``number_tasks``
2. order the bolts in levels   ``levels.levels_of``
3. resolve the routes          ``resolve_routes``
4. cut the levels into stages  ``cut_stages``: an exchange wherever data has to move
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, TopologyError
from sparkstorm.planning.guarantee import check_guarantee
from sparkstorm.planning.levels import levels_of
from sparkstorm.planning.plan import ACKER, Level, Plan, Route, Stage, StageKind, StreamKey
from sparkstorm.topology.graph import Topology
from sparkstorm.topology.grouping import LocalOrShuffle

__all__ = ["make_plan"]

_MAX_TASKS = 1 << 15
"""Task numbers are the upper bits of roots, and routing sorts them as 16-bit numbers."""

_MOST_ACKERS = 16
"""The default limit of ackers. Every task reports to every acker, so each additional acker costs
every task more, while a single acker merges millions of roots a second."""

_MAX_NAME_BYTES = 128


def make_plan(
    topology: Topology,
    *,
    name: str = "topology",
    config: Config | None = None,
    partitions: int = 1,
    taps: Iterable[str] = (),
) -> Plan:
    """Decide everything about a run.

    Args:
        topology: the graph.
        name: the topology's name: letters, digits, ``.``, ``_`` and ``-``.
        config: the settings; the defaults if None.
        partitions: partitions of every exchange, unless the config sets them.
        taps: ids of components whose emitted tuples also reach the driver.

    Raises:
        ConfigError: the topology cannot keep the guarantee of its settings.
    """
    config = config or Config()
    check_guarantee(topology, config)
    count = config.partitions or partitions
    tasks = number_tasks(topology, config, count)
    levels = levels_of(topology)
    routes = resolve_routes(topology, tasks)
    return Plan(
        name=check_name(name),
        topology=topology,
        config=config,
        partitions=count,
        tasks=tasks,
        levels=levels,
        stages=cut_stages(topology, levels, tasks, count),
        routes=routes,
        taps=frozenset(_tapped(topology, taps)),
    )


def check_name(name: str) -> str:
    """Return the topology's name, or raise ConfigError if no folder could have the name."""
    if not name[:1].isalnum() or any(not (c.isalnum() or c in "._-") for c in name):
        raise ConfigError(
            f"{name!r} is not a topology name: use letters, digits, '.', '_' and '-', "
            f"and start with a letter or digit"
        )
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise ConfigError(
            f"the topology name {name[:20]!r}… is too long for a folder's: it may have "
            f"{_MAX_NAME_BYTES} bytes"
        )
    return name


def number_tasks(topology: Topology, config: Config, partitions: int) -> dict[str, range]:
    """Number the tasks from 1 in order of the sorted component ids, ackers included."""
    ackers = config.acker_executors
    # An explicit number stands, even 0, which turns tracking off.
    if ackers is None:
        ackers = min(partitions, _MOST_ACKERS)
    counts = {spec.id: spec.parallelism for spec in topology.components.values()}
    counts[ACKER] = ackers
    tasks, start = {}, 1
    for name in sorted(counts):
        tasks[name] = range(start, start + counts[name])
        start += counts[name]
    if start > _MAX_TASKS + 1:
        raise TopologyError(f"there are {start - 1} tasks: at most {_MAX_TASKS} are possible")
    return tasks


def resolve_routes(
    topology: Topology, tasks: Mapping[str, range]
) -> dict[StreamKey, tuple[Route, ...]]:
    """List the subscribers of every stream."""
    return {
        StreamKey(spec.id, stream): tuple(
            Route(target=reader.id, tasks=tasks[reader.id], grouping=edge.grouping)
            for reader, edge in topology.subscribers(spec.id, stream)
        )
        for spec in topology.components.values()
        for stream in spec.streams
    }


def cut_stages(
    topology: Topology, levels: tuple[Level, ...], tasks: Mapping[str, range], partitions: int
) -> tuple[Stage, ...]:
    """Put consecutive levels into one stage where no tuple can need another partition."""
    groups: list[list[Level]] = [[levels[0]]]
    for before, level in pairwise(levels):
        local = _stays_local(topology, before, level, tasks, partitions)
        # Stage 0 reads the source in one Spark operator; state needs an operator of its own.
        if local and not (level.stateful and len(groups) == 1):
            groups[-1].append(level)
        else:
            groups.append([level])
    stages = [
        Stage(kind=_kind(number, group), levels=tuple(level.index for level in group))
        for number, group in enumerate(groups)
    ]
    if len(tasks[ACKER]):
        stages.append(Stage(kind=StageKind.ACK, levels=()))
    return tuple(stages)


def _kind(number: int, group: list[Level]) -> StageKind:
    if number == 0:
        return StageKind.READ
    return StageKind.STATE if any(level.stateful for level in group) else StageKind.MAP


def _stays_local(
    topology: Topology,
    before: Level,
    level: Level,
    tasks: Mapping[str, range],
    partitions: int,
) -> bool:
    """Whether a level reads only from the level before, within its own partition."""
    everywhere = set(range(partitions))
    return all(
        isinstance(edge.grouping, LocalOrShuffle)
        and edge.source in before.components
        and {task % partitions for task in tasks[name]} == everywhere
        for name in level.components
        for edge in topology.components[name].subscriptions
    )


def _tapped(topology: Topology, taps: Iterable[str]) -> Iterable[StreamKey]:
    for component in taps:
        spec = topology.components.get(component)
        if spec is None:
            raise TopologyError(
                f"cannot tap {component!r}: there are {', '.join(topology.components)}"
            )
        for stream in spec.streams:
            yield StreamKey(component, stream)
