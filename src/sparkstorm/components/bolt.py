"""Bolts: the steps of a topology."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from sparkstorm.components.collector import BasicCollector, BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.wiring import Wiring
from sparkstorm.streams import Outputs
from sparkstorm.tuples import Tuple

if TYPE_CHECKING:  # sparkstorm/__init__.py tells why
    from sparkstorm.config import Config

__all__ = ["AnyBolt", "BasicBolt", "Bolt"]


class AnyBolt(ABC):
    """The base of all bolts.

    Every task in every worker process has its own instance: a copy, by pickle, of the instance in
    the topology. The engine keeps an instance between batches, but Spark may move a task to another
    process at any time. Attributes set after ``prepare`` are lost then. A bolt that changes
    attributes is therefore an error, except for names in ``transient``, or with ``stateful =
    True``.
    """

    outputs: Outputs = ()
    """The declared streams; see :class:`sparkstorm.Stream`."""

    transient: ClassVar[tuple[str, ...]] = ()
    """Attributes that may change and may be lost at any time: a cache, for example."""

    stateful: ClassVar[bool] = False
    """Whether attributes changed after ``prepare`` are state, kept with each batch.

    Use attributes for small state: at the end of each batch the engine pickles all changed
    attributes. After any failure the attributes have their values of the last committed
    batch. An ``execute`` that raises does not undo its changes. For larger state, or state by
    key, use :class:`sparkstorm.StatefulBolt`."""

    keeps_process: ClassVar[bool] = False
    """Whether tasks call :meth:`TaskContext.keep_process`: the end of a run then sees to it that
    nothing of them stays on the executors of a session that goes on."""

    context: TaskContext
    """The engine sets the context before ``prepare``."""

    writes_to: Sequence[Hashable] = ()
    """The places outside that this bolt is known to write to, as values of its own kind.

    A topology is refused if one of its spouts :meth:`PartitionedSpout.reads` such a place.
    """

    def component_configuration(self) -> Mapping[str, object]:
        """Return the settings this bolt needs for itself: ticks, for example.

        The builder calls it once, when the topology is built. ``add_configuration`` overrides the
        result.
        """
        return {}

    def faults(self, wiring: Wiring, tasks: int) -> Iterable[str]:
        """Return what is wrong with the bolt at its place in the topology, a sentence each.

        The builder calls it when the topology is built, so that a wrong field or grouping is told
        before anything runs.

        Args:
            wiring: the streams that the bolt reads, with their fields and groupings.
            tasks: the number of the bolt's tasks.
        """
        return ()

    def cleanup(self) -> None:
        """Called when the worker process ends in good order. A killed process skips it."""


class Bolt(AnyBolt):
    """A bolt with explicit anchors, acks and fails, through ``self.collector``."""

    collector: BoltCollector
    """The engine sets the collector before ``prepare``."""

    def prepare(self, config: "Config", context: TaskContext, collector: BoltCollector) -> None:
        """Called once per task and process, before the first tuple."""

    @abstractmethod
    def execute(self, tup: Tuple) -> Awaitable[None] | None:
        """Process one tuple: emit, then ack or fail it, now or in ``finish_batch``.

        If ``execute`` raises, the tuple fails with the traceback. Tuples emitted before the error
        stay emitted.
        """

    def finish_batch(self) -> None:
        """Called after the task's last input of a batch: flush and ack here."""


class BasicBolt(AnyBolt):
    """A bolt with automatic tracking: emits are anchored, and the input is acked on return."""

    def prepare(self, config: "Config", context: TaskContext) -> None:
        """Called once per task and process, before the first tuple."""

    @abstractmethod
    def execute(self, tup: Tuple, collector: BasicCollector) -> Awaitable[None] | None:
        """Process one tuple. If ``execute`` raises, the tuple fails and its emits are dropped."""
