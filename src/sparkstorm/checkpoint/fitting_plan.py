"""The plan of a topology on its checkpoint, which has a say in it."""

from collections.abc import Iterable

from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.checkpoint.manifest import Manifest
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
    """Decide everything about a run that goes on from a checkpoint, or begins one.

    Args:
        topology: the graph.
        files: our part of the checkpoint.
        where: the checkpoint as people name it.
        name: the topology's name.
        config: the settings.
        partitions: partitions of every exchange, if neither the checkpoint nor the config says it.
        taps: component ids whose emitted tuples also come out in the driver.

    Raises:
        CheckpointError: the checkpoint is another topology's.
        ConfigError: the topology cannot keep the guarantee that it is to give.
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
    """Find what would stop a run before Spark starts for it, which takes seconds.

    A checkpoint elsewhere than in local files is only reached through Spark, and checked then.

    Raises:
        SparkstormError: a setting or the checkpoint does not fit.
    """
    taps = list(taps)
    make_plan(topology, name=name, config=config, taps=taps)
    files = None if checkpoint is None else LocalFiles.of_checkpoint(checkpoint)
    if checkpoint is not None and files is not None:
        plan_on_checkpoint(
            topology, files.make(), checkpoint, name=name, config=config, partitions=1, taps=taps
        )
