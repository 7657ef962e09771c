"""Every exception of sparkstorm, split by whose fault it is.

::

    SparkstormError
    ├── TopologyError        yours: the topology is wired wrongly (all faults at once in .faults)
    ├── ConfigError          yours: a setting is unknown or has a bad value
    ├── ComponentError       yours: a spout or bolt broke a rule while running
    │   ├── EmitError        values, stream or task of an emit do not fit what was declared
    │   ├── TrackingError    a tuple was acked twice, anchored after its ack, or is a stranger here
    │   ├── ProtocolError    a shell component's child broke the multi-language protocol
    │   └── AttributeStateError  a bolt keeps state in attributes although it declares none
    ├── WorldError           the world's: something outside is missing, broken or taken
    │   ├── EnvironmentFault Java, a package or a session setting is missing
    │   ├── CheckpointError  the checkpoint is unreadable, in use, or of another topology
    │   │   └── SupersededError  another run has taken over the checkpoint of this one
    │   ├── ProcessLostError a process that a task keeps cannot be started or reached
    │   ├── CommitError      a committer could not apply a transaction
    │   ├── SpoutConnectionError  the system that a spout reads from is away or refuses
    │   └── SparkLostError   Spark's JVM has ended, or it can start no Python workers
    ├── BatchError           a batch could not be completed although it was tried again
    └── InternalError        ours: please report it
"""

from collections.abc import Sequence

from sparkstorm.texts.showing import visible_lines

__all__ = [
    "AttributeStateError",
    "BatchError",
    "CheckpointError",
    "CommitError",
    "ComponentError",
    "ConfigError",
    "EmitError",
    "EnvironmentFault",
    "InternalError",
    "ProcessLostError",
    "ProtocolError",
    "SparkLostError",
    "SparkstormError",
    "SpoutConnectionError",
    "SupersededError",
    "TopologyError",
    "TrackingError",
    "WorldError",
]


class SparkstormError(Exception):
    """Base of everything that sparkstorm raises on purpose.

    Its text may quote foreign text, and ends up on terminals and in logs, so it is made visible
    here.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(visible_lines(arg) if isinstance(arg, str) else arg for arg in args))


class TopologyError(SparkstormError):
    """The topology is wired wrongly; ``faults`` lists all faults, not only the first."""

    def __init__(self, faults: str | Sequence[str]) -> None:
        self.faults: tuple[str, ...] = tuple(
            map(visible_lines, (faults,) if isinstance(faults, str) else faults)
        )
        super().__init__("\n".join(self.faults))

    def __reduce__(self) -> tuple[type["TopologyError"], tuple[tuple[str, ...]]]:
        # By default pickle would pass the joined text, and the copy would have one fault.
        return type(self), (self.faults,)


class ConfigError(SparkstormError):
    """A configuration key is unknown or its value does not fit."""


class ComponentError(SparkstormError):
    """A spout or bolt broke a rule of the API while it ran."""


class EmitError(ComponentError):
    """An emit does not fit the declared stream; the text names component, stream and field."""


class TrackingError(ComponentError):
    """A tuple was acked or anchored in a way its tree could never complete."""


class ProtocolError(ComponentError):
    """A shell component's child, or its parent, broke the multi-language protocol."""


class AttributeStateError(ComponentError):
    """A bolt changed its own attributes although it declares no state."""


class WorldError(SparkstormError):
    """Something outside of sparkstorm and of the topology is missing, broken or taken."""


class EnvironmentFault(WorldError):
    """Java, a package or a Spark setting that sparkstorm needs is missing."""


class CheckpointError(WorldError):
    """The checkpoint cannot be used: unreadable, in use, or written by another topology."""


class SupersededError(CheckpointError):
    """Another run has taken over this run's checkpoint; this run may write no more."""


class ProcessLostError(WorldError):
    """A process that a task keeps cannot be started, or its keeper cannot be reached."""


class CommitError(WorldError):
    """A committer could not apply a transaction; restart on the same checkpoint."""


class SpoutConnectionError(WorldError):
    """The system behind a spout is away, or refuses the connection."""


class SparkLostError(WorldError):
    """Spark's JVM has ended, or cannot start Python workers; restart the topology."""


class BatchError(SparkstormError):
    """A batch could not be completed, although it was tried again."""


class InternalError(SparkstormError):
    """A rule of sparkstorm itself was broken: a bug, please report it."""
