"""A conversation with a child as its parent would have it, with nothing of the engine behind it."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, final

from sparkstorm.errors import ProtocolError
from sparkstorm.multilang.codec import ParentCodec
from sparkstorm.multilang.framing import Stray
from sparkstorm.multilang.messages import (
    ChildMessage,
    Error,
    Handshake,
    Log,
    Metrics,
    ParentMessage,
    Pid,
)

__all__ = ["Conversation"]

_PIECE = 7
"""Bytes are written in such pieces, so that a child that reads by pieces is found out."""


@final
class Conversation:
    """Starts a child, shakes hands, and takes turns with it; a context manager.

    Args:
        command: the child.
        cwd: its working directory.
        secs: how long an answer may take.
    """

    TASKS = (7, 8)
    """The answer to an emit."""

    def __init__(self, command: Sequence[str], cwd: str | Path | None, secs: float) -> None:
        self.faults: list[str] = []
        self.is_silent = False
        self._secs = secs
        self._codec = ParentCodec()
        self._pids = Path(tempfile.mkdtemp(prefix="sparkstorm-pids-"))
        self._process = subprocess.Popen(  # noqa: S603 - the command under test
            list(command), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._heard: Queue[ChildMessage | str | None] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        for file in self._pids.iterdir():
            file.unlink()
        self._pids.rmdir()

    def shake_hands(self, component: str, streams: dict[str, list[str]]) -> None:
        """Send the handshake and check the answer."""
        context: dict[str, Any] = {
            "task->component": {"1": "source", "3": component, "7": "sink", "8": "sink"},
            "taskid": 3,
            "componentid": component,
            "streams": list(streams),
            "stream->outputfields": streams,
            "stream->target->grouping": {s: {"sink": {"type": "SHUFFLE"}} for s in streams},
            "source->stream->grouping": {"source": {"default": {"type": "SHUFFLE"}}},
            "source->stream->fields": {"source": {"default": ["value"]}},
        }
        conf = {"topology.name": "conformance", "topology.message.timeout.secs": 30}
        self.say(Handshake(conf=conf, context=context, pid_dir=str(self._pids)))
        answer = self.hear()
        while isinstance(answer, Log | Error):  # some tell before they answer
            answer = self.hear()
        if not isinstance(answer, Pid):
            self.faults.append(f"the handshake was answered by {answer}, not by a pid")
            return
        deadline = time.monotonic() + self._secs
        while not (self._pids / str(answer.pid)).exists():
            if time.monotonic() > deadline:
                self.faults.append(f"it made no empty file {answer.pid} in pidDir")
                return
            time.sleep(0.01)

    def say(self, *messages: ParentMessage) -> None:
        """Write messages in small pieces."""
        data = b"".join(map(self._codec.send, messages))
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101 - it was asked for
        with suppress(BrokenPipeError):  # its end is heard
            for at in range(0, len(data), _PIECE):
                pipe.write(data[at : at + _PIECE])

    def hear(self) -> ChildMessage | None:
        """Return the next message but metrics; None if none comes, or nothing will."""
        while True:
            try:
                message = self._heard.get(timeout=self._secs)
            except Empty:
                return None
            if isinstance(message, str):
                self.faults.append(message)
            elif not isinstance(message, Metrics):
                return message

    def end(self) -> None:
        """Close the child's input and check that it ends."""
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101
        pipe.close()
        try:
            self._process.wait(self._secs)
        except subprocess.TimeoutExpired:
            self.faults.append("it does not end when its standard input ends")

    def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None  # noqa: S101
        try:
            while data := os.read(pipe.fileno(), 65536):
                for message in self._codec.receive(data):
                    self._heard.put(_told(message))
            for message in self._codec.receive_end():
                self._heard.put(_told(message))
        except ProtocolError as error:
            self._heard.put(str(error))
        except (OSError, ValueError):  # closed under us: the check is over
            pass
        self._heard.put(None)


def _told(message: ChildMessage | Stray) -> ChildMessage | str:
    if isinstance(message, Stray):
        return f"it printed {message.text!r} to standard output"
    return message
