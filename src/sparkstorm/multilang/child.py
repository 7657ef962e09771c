"""The child: one attachment to the process of a shell component, as messages."""

import logging
import time
from collections.abc import Iterator
from typing import Final, final

from sparkstorm.components.context import TaskContext
from sparkstorm.components.processes import KeptProcess
from sparkstorm.errors import ProtocolError
from sparkstorm.multilang.framing import Stray
from sparkstorm.multilang.messages import (
    HEARTBEAT,
    Ack,
    ChildMessage,
    Emit,
    Error,
    Log,
    Metrics,
    ParentMessage,
    Pid,
    ShellTuple,
)
from sparkstorm.multilang.shell import Shell
from sparkstorm.texts.logs import logger_of

__all__ = ["Child", "ChildLostError", "Heard"]

Heard = ChildMessage | Stray
"""A message of the child, or text printed into the protocol."""

_LEVELS: Final = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_MOST_ERROR_TEXT: Final = 2000
_SEND_BYTES: Final = 64 * 1024


class ChildLostError(ProtocolError):
    """The child has ended, hangs, or breaks the protocol; the text names the case.

    Args:
        text: the case.
        code: the process's exit code, or a negative signal, if the process ended by itself.
    """

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@final
class Child:
    """One attachment to the child of a task; the child lives on after the attachment.

    The attachment handles logs, errors and metrics of the child, and yields all other messages.

    Args:
        shell: starts the child.
        context: the task's context.

    Attributes:
        replaying: whether an earlier run of this batch has read the last yielded message.
    """

    def __init__(self, shell: Shell, context: TaskContext) -> None:
        self._context = context
        self._logger = logger_of(f"sparkstorm.shell.{context.component}")
        self._codec = shell.codec()
        self._process: KeptProcess = context.keep_process(shell.spec(context))
        self._timeout_secs = context.config.subprocess_timeout_secs
        self._heard_at = time.monotonic()
        self._queue = bytearray()
        self._stderr = bytearray()
        self._last_words = ""
        self.replaying = False
        if self._process.is_new:
            self.send(shell.handshake(context))

    @property
    def identity(self) -> str:
        """The child's unique name."""
        return self._process.identity

    @property
    def is_new(self) -> bool:
        """Whether this attachment started the child."""
        return self._process.is_new

    @property
    def attachment(self) -> int:
        """Counts the attachments to children of this task on this node."""
        return self._process.attachment

    @property
    def before(self) -> str:
        """How the child before ended, if by itself."""
        return self._process.ended

    def send(self, message: ParentMessage) -> None:
        """Queue a message.

        Raises:
            ValueError: a value has no form in the child's format.
        """
        self._queue += self._codec.send(message)
        if len(self._queue) > _SEND_BYTES:
            self.flush()

    def send_heartbeat(self) -> None:
        """Queue a heartbeat: the child answers ``sync`` after reading all earlier messages."""
        self.send(ShellTuple(id="0", comp=None, stream=HEARTBEAT, task=-1, values=()))

    def flush(self) -> None:
        """Hand the queue to the keeper."""
        if self._queue:
            self._process.write(bytes(self._queue))
            self._queue.clear()

    def hear(self, secs: float, *, must_speak: bool = False) -> Iterator[Heard]:
        """Yield the child's next messages; wait at most ``secs``.

        Args:
            secs: how long.
            must_speak: whether the child owes an answer, so that too long a silence is its end.

        Raises:
            ChildLostError: the child has ended, has broken the protocol, or hangs.
        """
        self.flush()
        output = self._process.wait(secs)
        self._hear_errors(output.errors)
        if output.again:
            yield from self._replayed(output.again)
        if output.data:
            self._heard_at = time.monotonic()
            yield from self._messages(self._codec.receive(output.data))
        elif must_speak and output.exit is None:
            self._check_silence()
        if output.exit is not None:
            yield from self._messages(self._codec.receive_end())
            raise ChildLostError(f"its process has ended: {self._how(output.exit)}", output.exit)

    def expect(self) -> None:
        """Start the time-out of the child's next answer."""
        self._heard_at = time.monotonic()

    def detach(self) -> None:
        """Detach from the child until the next batch."""
        self.flush()
        self._process.detach(self._codec.unread)

    def kill(self) -> None:
        """End the child."""
        self._process.kill()

    def __repr__(self) -> str:
        return f"Child({self._process!r})"

    def _replayed(self, data: bytes) -> Iterator[Heard]:
        """Yield messages that an earlier run of this batch has read, without its logs."""
        self.replaying = True
        try:
            for message in self._codec.receive(data):
                if not isinstance(message, Log | Error | Metrics | Stray | Pid):
                    yield message
        finally:
            self.replaying = False

    def _messages(self, heard: Iterator[Heard]) -> Iterator[Heard]:
        try:
            for message in heard:
                match message:
                    case Emit() | Ack():  # nearly all
                        yield message
                    case Log():
                        self._logger.log(_LEVELS[message.level], "%s", message.text)
                    case Metrics():
                        self._count(message)
                    case Pid():
                        self._logger.debug("its process has the pid %s", message.pid)
                    case _:
                        yield message
        except ProtocolError as error:
            raise ChildLostError(str(error)) from None

    def _count(self, message: Metrics) -> None:
        params = message.params
        values = params if isinstance(params, dict) else {"": params}
        for key, value in values.items():
            name = f"{message.name}.{key}" if key else message.name
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._context.count(name, value)
            else:
                self._logger.warning(
                    "the metric %s has the value %r, which is no number", name, value
                )

    def _hear_errors(self, data: bytes) -> None:
        self._stderr += data
        *lines, rest = self._stderr.split(b"\n")
        self._stderr = bytearray(rest)
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            if text:
                self._last_words = text
                self._logger.info("%s", text)

    def _check_silence(self) -> None:
        if time.monotonic() - self._heard_at > self._timeout_secs:
            raise ChildLostError(
                f"its process gave no sign of life for {self._timeout_secs:g} s "
                f"(topology.subprocess.timeout.secs)"
            )

    def _how(self, code: int) -> str:
        if self._stderr:
            self._hear_errors(b"\n")
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {self._last_words[:_MOST_ERROR_TEXT]}" if self._last_words else how
