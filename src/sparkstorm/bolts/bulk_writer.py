"""Bulk writers: bolts that write many tuples at a time, as Storm's BatchHelper does."""

import traceback
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from sparkstorm.components.bolt import Bolt
from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import State, StatefulBolt
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, TopologyError
from sparkstorm.texts.user_errors import refuse_work
from sparkstorm.tuples import Tuple

__all__ = ["BulkWriterBolt", "HoldingBulkWriterBolt"]


class _Writer(Bolt):
    """The common part of both writers: how to write, and the fate of written tuples."""

    flush_size: int = 1_000
    """The most tuples of one write."""

    @abstractmethod
    def write(self, tuples: Sequence[Tuple]) -> None:
        """Write some tuples, all or none.

        If ``write`` returns, the bolt acks the tuples. If ``write`` raises, all the tuples fail
        with the error, and come again. A write happens before the batch is committed, and a tuple
        may come twice. So let a second write overwrite the first (for example with ``INSERT … ON
        CONFLICT … DO UPDATE``). Do not ack.
        """

    def component_configuration(self) -> Mapping[str, object]:
        """Check the size.

        Raises:
            TopologyError: ``flush_size`` is not a positive number.
        """
        if self.flush_size < 1:
            raise TopologyError(f"flush_size is {self.flush_size!r}: it is a number above 0")
        return {}

    def _flush(self, tuples: Sequence[Tuple]) -> None:
        if not tuples:
            return
        write: Callable[..., object] = self.write
        try:
            refuse_work(write(tuples), "write")
        except Exception as error:  # noqa: BLE001 - user code: what it should have written fails
            self.collector.report_error("".join(traceback.format_exception(error)))
            for tup in tuples:
                self.collector.fail(tup, error)
        else:
            for tup in tuples:
                self.collector.ack(tup)


class BulkWriterBolt(_Writer):
    """Writes ``flush_size`` tuples at a time, and the rest at the end of each batch.

    No tuple waits longer than its batch. If small batches make small writes, use a
    :class:`HoldingBulkWriterBolt`.
    """

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Start without tuples. An override has to call it."""
        self._waiting: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        """Keep a tuple until there are enough for a write."""
        if tup.is_tick:
            self.collector.ack(tup)
            return
        self._waiting.append(tup)
        if len(self._waiting) >= self.flush_size:
            self._flush_waiting()

    def finish_batch(self) -> None:
        """Write the rest. An override has to call it."""
        self._flush_waiting()

    def _flush_waiting(self) -> None:
        # Emptied first: a write that raises has failed its tuples, and must not see them again.
        tuples, self._waiting = self._waiting, []
        self._flush(tuples)


class HoldingBulkWriterBolt(_Writer, StatefulBolt):
    """Holds tuples over batches, to write ``flush_size`` at a time or after ``flush_secs``."""

    flush_secs: float = 1.0
    """How long a tuple may wait; ticks see to the write even without new tuples."""

    def component_configuration(self) -> Mapping[str, object]:
        """Ask for ticks.

        Raises:
            TopologyError: ``flush_size`` or ``flush_secs`` is not a positive number.
        """
        super().component_configuration()
        if self.flush_secs <= 0:
            raise TopologyError(f"flush_secs is {self.flush_secs!r}: it is a number above 0")
        return {"tick_tuple_freq_secs": min(1.0, max(0.05, self.flush_secs / 4))}

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Check the time. An override has to call it."""
        if config.enable_message_timeouts and self.flush_secs >= config.message_timeout_secs:
            raise ConfigError(
                f"the bolt holds tuples for flush_secs = {self.flush_secs}, but tuples time out "
                f"after {config.message_timeout_secs} s: raise message_timeout_secs"
            )

    def init_state(self, state: State) -> None:
        """Take up the held tuples. An override has to call it."""
        super().init_state(state)
        self._held = state.tuples("__bulk")

    def execute(self, tup: Tuple) -> None:
        """Hold a tuple."""
        if tup.is_tick:
            self.collector.ack(tup)
        else:
            self._held.add(None, tup)

    def finish_batch(self) -> None:
        """Write full sets and overdue tuples. An override has to call it."""
        tuples = self._held.get(None)
        overdue = bool(self._held.held_since(self.context.batch_time - self.flush_secs))
        full = len(tuples) if overdue else len(tuples) // self.flush_size * self.flush_size
        for start in range(0, full, self.flush_size):
            self._flush(tuples[start : min(start + self.flush_size, full)])
