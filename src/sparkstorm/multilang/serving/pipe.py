"""The pipe to the parent: messages in and out, and nothing else on the standard output."""

import logging
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import final

from sparkstorm.errors import ProtocolError
from sparkstorm.multilang.codec import ChildCodec
from sparkstorm.multilang.framing import Serializer, Stray
from sparkstorm.multilang.messages import ChildMessage, Error, Log, ParentMessage, TaskIds
from sparkstorm.texts.user_errors import message_of

__all__ = ["Pipe", "own_pipe"]

_PIECE = 64 * 1024
_LEVELS = {logging.DEBUG: 1, logging.INFO: 2, logging.WARNING: 3, logging.ERROR: 4}


@final
class Pipe:
    """Reads from one file descriptor and writes to another; any thread may send.

    Args:
        reading: where the parent's messages come from.
        writing: where ours go.
        serializer: how messages are written.
    """

    def __init__(self, reading: int, writing: int, serializer: Serializer | None = None) -> None:
        self._reading, self._writing = reading, writing
        self._codec = ChildCodec(serializer)
        self._waiting: deque[ParentMessage] = deque()
        self._sending = threading.Lock()
        self._may_log = threading.Event()
        self._has_ended = False

    def send(self, message: ChildMessage) -> None:
        """Write a message at once.

        Raises:
            ValueError: a value in it has no form in this format; nothing was written.
        """
        data = memoryview(self._codec.send(message))
        with self._sending:
            while data:
                data = data[os.write(self._writing, data) :]

    def open_log(self) -> None:
        """Send log lines from now on: the parent takes nothing before the handshake's answer."""
        self._may_log.set()

    def log(self, text: str, level: int) -> None:
        """Send a line for the parent's log, after the handshake."""
        self._may_log.wait()
        self.send(Log(text, level))

    def report(self, error: BaseException | str) -> None:
        """Tell the parent about an error, which fails nothing."""
        text = error if isinstance(error, str) else message_of(error)
        self.send(Error(text))

    def messages(self) -> Iterator[ParentMessage]:
        """Yield the parent's messages until it closes the pipe; blocks while there are none."""
        while (message := self.receive()) is not None:
            yield message

    def receive(self) -> ParentMessage | None:
        """Return the next message, or None at the end of the pipe.

        Raises:
            ProtocolError: the parent wrote something else.
        """
        while not self._waiting and not self._has_ended:
            self._read()
        return self._waiting.popleft() if self._waiting else None

    def task_ids(self) -> list[int]:
        """Return the answer to an emit; other messages that come before wait.

        Raises:
            ProtocolError: the parent closed the pipe instead.
        """
        passed: list[ParentMessage] = []
        while (message := self.receive()) is not None:
            if isinstance(message, TaskIds):
                self._waiting.extendleft(reversed(passed))
                return list(message.tasks)
            passed.append(message)
        raise ProtocolError("the parent closed the pipe before it answered an emit")

    @property
    def may_log(self) -> bool:
        """Whether the handshake is over."""
        return self._may_log.is_set()

    @property
    def is_quiet(self) -> bool:
        """Whether the parent has written nothing more for now."""
        return not self._waiting and not select.select([self._reading], [], [], 0)[0]

    def _read(self) -> None:
        data = os.read(self._reading, _PIECE)
        self._has_ended = not data
        found = self._codec.receive(data) if data else self._codec.receive_end()
        for message in found:
            if isinstance(message, Stray):
                raise ProtocolError(f"the parent wrote {message.text!r}, which is no message")
            self._waiting.append(message)


def own_pipe(serializer: Serializer | None = None) -> Pipe:
    """Return the pipe over this process's standard streams, which it takes for itself.

    Whatever is printed from now on, by Python, C code or child processes, goes to the parent's log,
    and so do records of Python's logging.
    """
    writing = os.dup(1)
    pipe = Pipe(os.dup(0), writing, serializer)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    printed, printing = os.pipe()
    os.dup2(printing, 1)
    os.close(printing)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    threading.Thread(target=_log_lines, args=[printed, pipe], daemon=True).start()
    logging.getLogger().addHandler(_Handler(pipe))
    logging.getLogger().setLevel(logging.INFO)
    return pipe


def _log_lines(descriptor: int, pipe: Pipe) -> None:
    with os.fdopen(descriptor, errors="backslashreplace") as lines:
        for line in lines:
            pipe.log(line.rstrip("\n"), _LEVELS[logging.INFO])


class _Handler(logging.Handler):
    """Sends records of Python's logging to the parent's log."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        level = max(
            (ours for theirs, ours in _LEVELS.items() if record.levelno >= theirs), default=0
        )
        if self._pipe.may_log:
            self._pipe.log(self.format(record), level)
        else:
            sys.stderr.write(f"{self.format(record)}\n")
