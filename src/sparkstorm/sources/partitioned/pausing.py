"""Pausing partitions of a running topology, and resuming them."""

from collections.abc import Collection, Iterable

from sparkstorm.errors import ConfigError
from sparkstorm.metrics import Statistics
from sparkstorm.sources.partitioned.task import PartitionedTask

__all__ = ["pause", "resume"]


def pause(
    tasks: Iterable[PartitionedTask], stand: Statistics, spout: str, names: Collection[str]
) -> None:
    """Let a spout plan nothing of these partitions, or of any.

    Args:
        tasks: all partitioned tasks of the topology.
        stand: how the topology stands, which tells what partitions there are.
        spout: the spout's name.
        names: partitions as ``stand`` names them; all if empty.

    Raises:
        ConfigError: there is no such spout or partition, or its source cannot be paused.
    """
    for task in _tasks_of(tasks, stand, spout, names):
        task.spout.pause(names)


def resume(
    tasks: Iterable[PartitionedTask], stand: Statistics, spout: str, names: Collection[str]
) -> None:
    """Let a spout plan these partitions again, or all; see :func:`pause`."""
    for task in _tasks_of(tasks, stand, spout, names):
        task.spout.resume(names)


def _tasks_of(
    tasks: Iterable[PartitionedTask], stand: Statistics, spout: str, names: Collection[str]
) -> list[PartitionedTask]:
    found = [task for task in tasks if task.component == spout]
    if not found:
        raise ConfigError(f"there is no partitioned spout {spout!r} to pause or resume")
    if isinstance(names, str):
        raise ConfigError(f"give the partitions as a list: [{names!r}]")
    known = [one.partition for one in stand.partitions.get(spout, ())]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(
            f"{spout!r} has no partition {unknown[0]!r}; it has {', '.join(known[:20]) or 'none'}"
        )
    return found
