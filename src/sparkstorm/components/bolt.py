"""Bolts: the steps of a topology."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from typing import ClassVar

from sparkstorm.components.collector import BasicCollector, BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.streams import Outputs
from sparkstorm.tuples import Tuple

__all__ = ["AnyBolt", "BasicBolt", "Bolt"]


class AnyBolt(ABC):
    """What all bolts have in common.

    Each task in each worker process has one instance, a copy (by pickle) of what the topology was
    built with. It is kept between batches, but Spark may run the task elsewhere at any time: what
    an instance sets on itself after ``prepare`` is not kept, so changing it is an error, but for
    the names in ``transient``, and unless the class says ``stateful = True``.
    """

    outputs: Outputs = ()
    """The declared streams; see :class:`sparkstorm.Stream`."""

    transient: ClassVar[tuple[str, ...]] = ()
    """Attributes that may change and may be lost at any time (a cache, say)."""

    stateful: ClassVar[bool] = False
    """Whether attributes that change after ``prepare`` are state, kept with each batch.

    For small state: all that has changed is pickled at the end of each batch. What they hold is as
    of the last committed batch, whatever fails; an ``execute`` that raises does not undo what it
    did to them. Larger state, or state by key: :class:`sparkstorm.StatefulBolt`.
    """

    keeps_process: ClassVar[bool] = False
    """Whether tasks call :meth:`TaskContext.keep_process`: the end of a run then sees to it that
    nothing of them stays on the executors of a session that goes on."""

    context: TaskContext
    """Set by the engine before ``prepare``."""

    def component_configuration(self) -> Mapping[str, object]:
        """Return the settings that this bolt needs for itself, ticks for example.

        Called once, when the topology is built; ``add_configuration`` goes over it.
        """
        return {}

    def cleanup(self) -> None:
        """Called at the end of the worker process, if it ends in good order: best effort."""


class Bolt(AnyBolt):
    """A bolt that anchors, acks and fails by itself, through ``self.collector``."""

    collector: BoltCollector
    """Set by the engine before ``prepare``."""

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Called once per task and process, before the first tuple."""

    @abstractmethod
    def execute(self, tup: Tuple) -> Awaitable[None] | None:
        """Process one tuple: emit, then ack or fail it, now or in ``finish_batch``.

        If it raises, the tuple fails with the traceback; what was emitted before stays emitted.
        """

    def finish_batch(self) -> None:
        """Called when the batch has no more input for this task: flush and ack here."""


class BasicBolt(AnyBolt):
    """A bolt whose emits are anchored to its input, which is acked when ``execute`` returns."""

    def prepare(self, config: Config, context: TaskContext) -> None:
        """Called once per task and process, before the first tuple."""

    @abstractmethod
    def execute(self, tup: Tuple, collector: BasicCollector) -> Awaitable[None] | None:
        """Process one tuple. If it raises, the tuple fails and its emits are dropped."""
