"""Planning on a checkpoint: an existing checkpoint fixes parts of the plan."""

from collections.abc import Iterable

from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.config import Config
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.topology.graph import Topology

__all__ = ["check_ahead", "plan_on_checkpoint"]


def plan_on_checkpoint(
    topology: Topology,
    files: CheckpointFiles,
    where: str,
    *,
    name: str,
    config: Config,
    partitions: int,
    taps: Iterable[str] = (),
) -> Plan:
    """Decide everything about a run on an existing or new checkpoint.

    Args:
        topology: the graph.
        files: our part of the checkpoint.
        where: the checkpoint as people name it.
        name: the topology's name.
        config: the settings.
        partitions: partitions of every exchange, unless the checkpoint or the config sets them.
        taps: ids of components whose emitted tuples also reach the driver.

    Raises:
        CheckpointError: the checkpoint is another topology's.
        ConfigError: the topology cannot keep the guarantee of its settings.
    """
    manifest = Manifest.read(files)
    if manifest is not None:
        partitions = manifest.partitions
    plan = make_plan(topology, name=name, config=config, partitions=partitions, taps=taps)
    if manifest is not None:
        manifest.check(plan, where)
    return plan


def check_ahead(
    topology: Topology,
    checkpoint: str | None,
    *,
    name: str,
    config: Config,
    taps: Iterable[str] = (),
) -> None:
    """Find faults of a run before Spark starts, which takes seconds.

    A checkpoint outside of local files is reached only through Spark, and is checked later.

    Raises:
        SparkstormError: a setting or the checkpoint does not fit, or a source is not there.
    """
    taps = list(taps)
    make_plan(topology, name=name, config=config, taps=taps)
    for spec in topology.spouts:
        if isinstance(spec.component, PartitionedSpout):
            spec.component.check()
    files = None if checkpoint is None else LocalFiles.of_checkpoint(checkpoint)
    if checkpoint is not None and files is not None:
        plan_on_checkpoint(
            topology, files.make(), checkpoint, name=name, config=config, partitions=1, taps=taps
        )
