"""The processing guarantee: can the topology's components keep it?"""

from collections.abc import Iterator

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.components.committer import CommitterBolt
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.topology.graph import ComponentSpec, Topology

__all__ = ["check_guarantee"]


def check_guarantee(topology: Topology, config: Config) -> None:
    """Check that a topology can keep the guarantee promised by its settings.

    Raises:
        ConfigError: names all unfit components, each with the mend.
    """
    exactly_once = config.processing_guarantee == "exactly-once"
    faults = [*(_exactly_once if exactly_once else _at_least_once)(topology, config)]
    if faults:
        raise ConfigError("\n".join(faults))


def _at_least_once(topology: Topology, config: Config) -> Iterator[str]:
    for spec in topology.bolts:
        if isinstance(spec.component, CommitterBolt):
            yield (
                f"bolt {spec.id!r} is a committer, which needs batches that happen once: set "
                f"processing.guarantee to exactly-once, or use a bolt that writes by itself"
            )


def _exactly_once(topology: Topology, config: Config) -> Iterator[str]:
    if config.acker_executors == 0:
        yield (
            "processing.guarantee is exactly-once, but topology.acker.executors is 0: only "
            "tracked batches can be known to be whole; leave it out"
        )
    for spec in topology.spouts:
        yield from _source(spec)
    for spec in topology.bolts:
        if isinstance(spec.component, AnyBolt) and spec.component.keeps_process:
            yield (
                f"bolt {spec.id!r} keeps a process of its own (a shell bolt's child), whose memory "
                f"is not rolled back with a batch, as processing.guarantee exactly-once needs: use "
                f"at-least-once, or a bolt in Python"
            )
            continue
        freq = config.override(dict(spec.settings)).tick_tuple_freq_secs
        if freq is not None:
            yield (
                f"bolt {spec.id!r} gets tick tuples, but with processing.guarantee exactly-once "
                f"a batch must be the same when it is run again, and time never is: take "
                f"topology.tick.tuple.freq.secs away, or a bolt that does not need them"
            )


def _source(spec: ComponentSpec) -> Iterator[str]:
    if not isinstance(spec.component, PartitionedSpout):
        yield (
            f"spout {spec.id!r} lives in the driver and cannot give the same messages again, which "
            f"processing.guarantee exactly-once needs: read from files (LinesSpout) or from Kafka "
            f"(KafkaSpout), or use at-least-once"
        )
    elif not spec.component.replayable:
        yield (
            f"spout {spec.id!r} does not say that it can give the same messages again, which "
            f"processing.guarantee exactly-once needs: if its read always yields the same for a "
            f"split, set replayable = True on {type(spec.component).__name__}"
        )
