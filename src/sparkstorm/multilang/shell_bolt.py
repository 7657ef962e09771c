"""ShellBolt: a bolt whose code is a child process of any language."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import State, StatefulBolt
from sparkstorm.config import Config
from sparkstorm.multilang.bolt_batch import CHILD, BoltBatch
from sparkstorm.multilang.framing import Serializer
from sparkstorm.multilang.shell import Shell
from sparkstorm.streams import Outputs
from sparkstorm.tuples import Tuple

__all__ = ["ShellBolt"]

_OWN_TICK_SECS: Final = 0.9990234375
"""How often a batch runs for late acks without other input. The odd number tells these ticks from
ticks that the user asked for; only the user's ticks go to the child."""


class ShellBolt(StatefulBolt):
    """Runs a bolt in a child process by Storm's multi-language protocol.

    Each task has one child on its node for the life of the run, so the child may keep things in
    memory. The child emits, acks and fails as it likes. A tuple not acked by the end of the batch
    stays open, and may be acked in a later batch. If the child dies or hangs, its tuples fail with
    the reason, and the bolt starts another child.

    A child may get a tuple again, after a retry of the message or a second run of the batch, and
    processes the tuple again: at least once, as in Storm. A rollback of a batch does not touch the
    child's memory.

    Args:
        command: the program and its arguments, as a list or as a line for a shell to split.
        outputs: the declared streams, unless the class declares them.
        resources: a folder whose content travels with the topology; the child's working directory.
        env: variables for the child; ``PATH`` is appended to the inherited ``PATH``.
        serializer: ``"json"``, ``"msgpack"`` as pystorm writes it, or an object of your own.
        linger_secs: how long the end of a batch waits for acks after the child has read all.

    >>> ShellBolt("node split.js", outputs="word string").outputs
    'word string'
    """

    transient: ClassVar[tuple[str, ...]] = ("_batch",)
    keeps_process: ClassVar[bool] = True

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        outputs: "Outputs | None" = None,
        resources: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        serializer: str | Serializer = "json",
        linger_secs: float = 0.05,
    ) -> None:
        if outputs is not None:
            self.outputs = outputs
        self._shell = Shell.of(command, resources, env, serializer)
        self._linger_secs = linger_secs
        self._batch: BoltBatch | None = None

    def component_configuration(self) -> Mapping[str, object]:
        """Ask for ticks, so that late acks are heard without other input."""
        return {"tick_tuple_freq_secs": _OWN_TICK_SECS}

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Check that the program exists. An override has to call this method.

        Raises:
            EnvironmentFault: the program is not on this host.
        """
        self._shell.check(context)
        self._tells_ticks = config.tick_tuple_freq_secs != _OWN_TICK_SECS

    def init_state(self, state: State) -> None:
        """Take up tuples not yet acked. An override has to call this method."""
        super().init_state(state)
        self._held = state.tuples("__shell")
        self._notes = state.named("__shell")

    def execute(self, tup: Tuple) -> None:
        """Send a tuple to the child."""
        is_ours = tup.is_tick and not self._tells_ticks
        if is_ours and CHILD not in self._notes:  # nobody to listen to, and none to be started
            self.collector.ack(tup)
            return
        batch = self._batch
        if batch is None or not batch.is_of(self.context.batch):
            batch = self._batch = BoltBatch(
                self._shell,
                self.context,
                self.collector,
                held=self._held,
                notes=self._notes,
                linger_secs=self._linger_secs,
            )
        if is_ours:
            self.collector.ack(tup)
        else:
            batch.take(tup)

    def finish_batch(self) -> None:
        """Wait until the child has read everything, and hold tuples not yet acked."""
        batch, self._batch = self._batch, None
        if batch is not None and batch.is_of(self.context.batch):
            batch.finish()
