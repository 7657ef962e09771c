"""A server process with a folder of its own: started, stopped, or killed."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing.servers.guardian import guarded
from sparkstorm.testing.waiting import PATIENCE_SECS, wait_until

__all__ = ["LOOK_SECS", "STOP_SECS", "ServerProcess", "ask", "free_ports", "run"]

STOP_SECS = 10.0
"""The longest time that a server may take to stop in good order."""

LOOK_SECS = 0.05
"""The pause between two looks."""

_LOG_LINES = 15


class ServerProcess(ABC):
    """A server with a folder of its own; a context manager that starts and stops the server.

    ``kill`` ends the server as a crash would; ``start`` starts the server again on the same folder
    and ports. The server ends with this process, also if that is killed
    (:mod:`guardian`).
    """

    _user: str | None = None
    """The user to run the server as; None for the tests' own user."""

    _stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sparkstorm-server-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """The address for clients: ``host:port``."""

    @property
    def log(self) -> str:
        """The server's printed lines so far."""
        path = self._folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start the server and wait until it answers a client. A running server is left alone.

        Raises:
            EnvironmentFault: a program or the network is missing, or the server does not come up.
        """
        if self._process is not None and self._process.poll() is None:
            return
        command = self._command()
        with (self._folder / "console.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: _end kills it, and Ctrl-C spares it
                env={**os.environ, **guarded()},
                user=self._user,
            )
        deadline = time.monotonic() + PATIENCE_SECS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                tail = "\n".join(self.log.splitlines()[-_LOG_LINES:])
                raise EnvironmentFault(f"{type(self).__name__} did not come up:\n{tail}")
            time.sleep(LOOK_SECS)

    def stop(self) -> None:
        """Stop the server in good order, if running."""
        self._end(self._stop_signal)

    def kill(self) -> None:
        """End the server at once, as a crash would (``kill -9``)."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let the server fall silent, with its connections open."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self._send(signal.SIGCONT)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # Python calls no __exit__ after a failed __enter__
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __repr__(self) -> str:
        up = self._process is not None and self._process.poll() is None
        return f"{type(self).__name__}({self.address}, {'up' if up else 'down'})"

    @abstractmethod
    def _command(self) -> list[str]:
        """Prepare the folder and return the command to start the server."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a client gets an answer now."""

    def _send(self, what: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, what)

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(STOP_SECS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # A server that is started by a script is the script's child, and ends a moment later.
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not _listens(self.address), secs=STOP_SECS)


def _listens(address: str) -> bool:
    """Whether a process listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    with socket.socket() as link:
        link.settimeout(1.0)
        return link.connect_ex((host, int(port))) == 0


def run(command: list[str], what: str, user: str | None = None) -> None:
    """Run a program to its end.

    Raises:
        EnvironmentFault: the program failed; the text shows its last lines.
    """
    done = subprocess.run(  # noqa: S603 - our own command
        command,
        capture_output=True,
        text=True,
        user=user,
        cwd="/",
        env={**os.environ, **guarded()},
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-_LOG_LINES:])
        raise EnvironmentFault(f"{what}:\n{tail}")


def free_ports(count: int) -> list[int]:
    """Return free ports of loopback."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:  # all are open at once, so that no port comes twice
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def ask(host: str, port: int, request: bytes, most: int, end: bytes = b"") -> bytes:
    """Send a request; return the answer up to its ``end`` or ``most`` bytes, empty if none."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, port), timeout=1.0) as link,
    ):
        link.sendall(request)
        answer = b""
        while len(answer) < most and (piece := link.recv(most - len(answer))):
            answer += piece
            if end and answer.endswith(end):
                break
        return answer
    return b""
