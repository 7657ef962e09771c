"""ShellSpout: a spout whose code is a child process of any language."""

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.config import Config
from sparkstorm.errors import ProcessLostError
from sparkstorm.multilang.child import Child, ChildLostError, Heard
from sparkstorm.multilang.framing import Serializer, Stray
from sparkstorm.multilang.messages import Command, Emit, Error, MsgId, Sync, TaskIds, Unknown
from sparkstorm.multilang.shell import Shell
from sparkstorm.streams import Outputs
from sparkstorm.verdicts import Failure

__all__ = ["ShellSpout"]

_BACKOFF_SECS: Final = 0.1
_LONGEST_BACKOFF_SECS: Final = 30.0
_WAIT_SECS: Final = 1.0


class ShellSpout(Spout):
    """Runs a spout in a child process by Storm's multi-language protocol.

    Each task has one child, on the driver's host. The child gets one command at a time: ``next``,
    ``ack``, ``fail``, ``activate``, ``deactivate``, and ends each answer with ``sync``. The child
    gets message ids back exactly as sent, text or numbers.

    If the child dies or hangs, the spout starts another child, at first at once and then with
    longer and longer pauses. Messages of the dead child go on through the topology. Nobody hears of
    their acks. Failed messages become dead letters, unless the new child has emitted them again.

    Args:
        command: the program and its arguments, as a list or as a line for a shell to split.
        outputs: the declared streams, unless the class declares them.
        resources: a folder whose content travels with the topology; the child's working directory.
        env: variables for the child; ``PATH`` is appended to the inherited ``PATH``.
        serializer: ``"json"``, ``"msgpack"`` as pystorm writes it, or an object of your own.
        lifecycle: whether to send ``activate`` and ``deactivate``; older adapters know neither.
        ends: whether the child may end with exit code 0 after its last message, for input with an
            end.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        outputs: "Outputs | None" = None,
        resources: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        serializer: str | Serializer = "json",
        lifecycle: bool = True,
        ends: bool = False,
    ) -> None:
        if outputs is not None:
            self.outputs = outputs
        self._shell = Shell.of(command, resources, env, serializer)
        self._lifecycle = lifecycle
        self._ends = ends
        self._child: Child | None = None
        self._mine: set[MsgId] = set()
        self._waiting: deque[Command] = deque()
        self._is_busy = False
        self._deaths = 0
        self._restart_at = 0.0
        self._done = False

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Start the child.

        Raises:
            EnvironmentFault: the child's program is not on this host.
        """
        self._context = context
        self._collector = collector
        self._shell.check(context)
        self._child = Child(self._shell, context)

    def close(self) -> None:
        """Detach; the keeper ends the child."""
        if self._child is not None:
            child, self._child = self._child, None
            child.detach()

    def next_tuple(self) -> None:
        """Ask the child for messages."""
        self._command(Command("next"))

    def ack(self, msg_id: Any) -> None:
        """Tell the child that emitted the message."""
        if msg_id in self._mine:
            self._mine.discard(msg_id)
            self._command(Command("ack", msg_id))

    def fail(self, msg_id: Any, failure: Failure) -> None:
        """Tell the child that emitted the message. The child may emit the message again."""
        if msg_id in self._mine:
            self._mine.discard(msg_id)
            self._command(Command("fail", msg_id))
        else:  # by a child that is gone
            self._collector.give_up(msg_id, failure)

    def activate(self) -> None:
        """Tell the child."""
        if self._lifecycle:
            self._command(Command("activate"))

    def deactivate(self) -> None:
        """Tell the child."""
        if self._lifecycle:
            self._command(Command("deactivate"))

    def exhausted(self) -> bool:
        """Whether the child has ended in good order."""
        return self._done

    def _command(self, command: Command) -> None:
        """Send a command, after the running command has ended.

        Without ackers the engine acks a message during the child's emit.
        """
        self._waiting.append(command)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._waiting:
                self._talk(self._waiting.popleft())
        finally:
            self._is_busy = False

    def _talk(self, command: Command) -> None:
        """Send a command, and carry out the child's messages until ``sync``."""
        child = self._started()
        if child is None:
            return
        try:
            child.send(command)
            child.expect()
            while not self._has_synced(child):
                pass
        except (ChildLostError, ProcessLostError) as error:
            self._lose(child, error)
        else:
            self._deaths = 0

    def _has_synced(self, child: Child) -> bool:
        synced = False
        for message in child.hear(_WAIT_SECS, must_speak=True):
            synced = self._obey(message, child) or synced
        return synced

    def _obey(self, message: Heard, child: Child) -> bool:
        """Carry out a message of the child; return whether the message was ``sync``."""
        match message:
            case Sync():
                return True
            case Emit():
                self._emit(message, child)
            case Error(text):
                self._collector.report_error(text)
            case Stray(text):
                self._collector.report_error(
                    f"the process printed {text[:500]!r}: its standard output belongs to the "
                    f"protocol, so print to standard error"
                )
            case Unknown(command):
                raise ChildLostError(f"its process sent the unknown command {command!r}")
            case _:
                raise ChildLostError(f"its process sent {message}, which no spout may")
        return False

    def _emit(self, message: Emit, child: Child) -> None:
        if message.id is not None:
            self._mine.add(message.id)
        if message.task is not None:
            self._collector.emit_direct(
                message.task, message.values, msg_id=message.id, stream=message.stream
            )
            return
        self._collector.emit(message.values, msg_id=message.id, stream=message.stream)
        if message.need_task_ids:
            child.send(TaskIds(receivers(self._context, message)))
            child.flush()

    def _started(self) -> Child | None:
        """Return the child; start a child if the pause is over."""
        if self._child is None and not self._done:
            if self._context.clock.monotonic() < self._restart_at:
                return None
            try:
                self._child = Child(self._shell, self._context)
            except ProcessLostError as error:
                self._pause(error)
        return self._child

    def _lose(self, child: Child, error: Exception) -> None:
        """Note the child's end: start another child at the next call, or after a pause."""
        self._child = None
        self._mine.clear()
        self._waiting.clear()
        try:
            child.kill()
        except ProcessLostError as second:  # its keeper is gone, and the child with it
            self._collector.report_error(second)
        if self._ends and isinstance(error, ChildLostError) and error.code == 0:
            self._done = True
        else:
            self._pause(error)

    def _pause(self, error: Exception) -> None:
        self._collector.report_error(error)
        pause = _BACKOFF_SECS * (1 << min(self._deaths, 16)) if self._deaths else 0.0
        self._deaths += 1
        self._restart_at = self._context.clock.monotonic() + min(pause, _LONGEST_BACKOFF_SECS)


def receivers(context: TaskContext, message: Emit) -> tuple[int, ...]:
    """Return the possible tasks of an emit, for the child: a spout's tuples are routed later."""
    targets = context.wiring.targets.get(message.stream, {})
    return tuple(task for target in targets for task in context.component_tasks(target))
