"""The worker's side of kept processes: find or start the node's keeper, attach, move bytes."""

import fcntl
import hashlib
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import Any, Final, final

from sparkstorm.components.processes import ProcessOutput, ProcessSpec
from sparkstorm.errors import ProcessLostError
from sparkstorm.processes import keeper
from sparkstorm.processes.keeper import CHUNK, HEAD, SOCKET, TOKEN
from sparkstorm.processes.pipes import Pipes

__all__ = ["AttachedProcess", "KeeperClient", "end_keeper"]

_START_SECS: Final = 60.0
_DETACH_SECS: Final = 30.0
_MOST_DESCRIPTORS: Final = 4
"""Standard input, output and error, and the journal."""


@final
class KeeperClient:
    """The kept processes of this node in one run (:class:`~sparkstorm.components.NodeProcesses`).

    Args:
        run: names the run: the driver's life.
        owner: the process for which the children run; they end when it has ended.
    """

    def __init__(self, run: str, owner: int) -> None:
        self._folder = folder_of(run)
        self._owner = owner

    def attach(self, name: str, spec: ProcessSpec, batch: int) -> "AttachedProcess":
        """Return a task's process, started if it does not run."""
        sock = self._connect()
        request = {
            "token": (self._folder / TOKEN).read_text(),
            "name": name,
            "command": list(spec.command),
            "cwd": spec.cwd,
            "env": dict(spec.env),
            "batch": batch,
            "owner": self._owner,
        }
        return AttachedProcess(sock, request)

    def folder(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Return a folder of the run on this node, filled by whoever comes first."""
        self._connect().close()
        place = self._folder / name
        with _locked(self._folder.with_suffix(".lock")):
            if not place.exists():
                making = Path(tempfile.mkdtemp(dir=self._folder))
                fill(making)
                making.rename(place)
        return place

    def _connect(self) -> socket.socket:
        sock = _connected(self._folder)
        if sock is not None:
            return sock
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700, parents=True)
        _check_private(self._folder)
        with _locked(self._folder.with_suffix(".lock")):
            sock = _connected(self._folder)  # another worker may have started it meanwhile
            if sock is None:
                self._start()
                sock = _connected(self._folder)
        if sock is None:
            raise ProcessLostError(
                f"the keeper of child processes on {socket.gethostname()} takes no connections"
            )
        return sock

    def _start(self) -> None:
        folder = self._folder
        for leftover in (SOCKET, TOKEN):  # of a keeper that was killed
            (folder / leftover).unlink(missing_ok=True)
        program, log = folder / "keeper.py", folder / "keeper.log"
        program.write_bytes(_source())
        token = os.open(folder / TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(token, "w") as file:
            file.write(secrets.token_hex(16))
        with open(log, "wb") as out:
            # It forks, and ends here as soon as its socket is there.
            done = subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", str(program), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                timeout=_START_SECS,
                check=False,
                cwd="/",
            )
        if done.returncode:
            text = log.read_text(errors="replace").strip().splitlines()
            raise ProcessLostError(
                f"the keeper of child processes cannot be started on {socket.gethostname()}: "
                f"{text[-1] if text else f'exit code {done.returncode}'}"
            )


@final
class AttachedProcess:
    """A task's hold on its process (:class:`~sparkstorm.components.KeptProcess`)."""

    def __init__(self, sock: socket.socket, request: dict[str, Any]) -> None:
        self._sock = sock
        self._received = bytearray()
        self._waiting = bytearray()
        self._descriptors: list[int] = []
        self._input = b""
        self._errors = b""
        self._exit: int | None = None
        self._pipes: Pipes | None = None
        self._send(b"A", json.dumps(request).encode())
        kind, payload = self._first_answer()
        found = json.loads(payload)
        if kind == b"F":
            self._close()
            command = request["command"]
            raise ProcessLostError(
                f"{command[0]!r} cannot be started on {socket.gethostname()} "
                f"(command {command}, folder {request['cwd'] or os.getcwd()}): {found['error']}"
            )
        self.pid: int = found["pid"]
        self.identity: str = found["identity"]
        self.is_new: bool = found["is_new"]
        self.attachment: int = found["attachment"]
        self.ended = _ended(found["ended"])
        self._pipes = Pipes(
            dict(zip(found["pipes"], self._descriptors, strict=True)),
            size=found["size"],
            read=found["read"],
            keeps=request["batch"] >= 0,
            keeper=sock.fileno(),
        )
        self._pipes.write(self._input)

    def write(self, data: bytes) -> None:
        """Queue bytes for the standard input of the process."""
        if self._pipes is not None:
            self._pipes.write(data)

    def wait(self, secs: float) -> ProcessOutput:
        """Move bytes both ways; return as soon as there is any output, at most after ``secs``."""
        pipes, deadline = self._pipes, time.monotonic() + secs
        if pipes is None:
            raise ProcessLostError("the process was let go")
        errors, self._errors = self._errors, b""
        again, out = pipes.earlier()
        if again or out or errors:
            return ProcessOutput(data=out, again=again, errors=errors)
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            out, errors, told = pipes.wait(left)
            if told:
                self._hear()
            if self._exit is not None:
                rest = pipes.drain()
                return ProcessOutput(data=out + rest[0], errors=errors + rest[1], exit=self._exit)
            if out or errors or left <= 0:
                return ProcessOutput(data=out, errors=errors)

    def detach(self, unread: int = 0) -> None:
        """Let the process go until the next batch."""
        pipes = self._pipes
        if pipes is None:
            return
        pipes.log()
        if pipes.unwritten:
            self._send(b"W", pipes.unwritten)
        self._leave(b"D", {"size": pipes.size, "read": pipes.read(unread)})

    def kill(self) -> None:
        """End the process and detach."""
        if self._pipes is not None:
            self._leave(b"K", {})

    def __repr__(self) -> str:
        state = "detached" if self._pipes is None else "attached"
        return f"AttachedProcess(pid {self.pid}, {state})"

    def _leave(self, kind: bytes, told: dict[str, int]) -> None:
        self._send(kind, json.dumps(told).encode())
        try:
            self._await(b"D", _DETACH_SECS)
        finally:
            self._close()

    def _first_answer(self) -> tuple[bytes, bytes]:
        try:
            return self._await(b"HF", _START_SECS)
        except ProcessLostError:
            self._close()
            raise

    def _await(self, kinds: bytes, secs: float) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + secs
        while True:
            for kind, payload in self._messages():
                if kind in kinds:
                    return kind, payload
                self._take(kind, payload)
            left = deadline - time.monotonic()
            if left <= 0:
                raise ProcessLostError(
                    f"the keeper of child processes on {socket.gethostname()} does not answer"
                )
            self._move(left)

    def _hear(self) -> None:
        """Take in what the keeper has sent."""
        self._move(0.0)
        for kind, payload in self._messages():
            self._take(kind, payload)

    def _take(self, kind: bytes, payload: bytes) -> None:
        if kind == b"W":
            self._input += payload
        elif kind == b"R":
            self._errors += payload
        elif kind == b"X":
            self._exit = json.loads(payload)["code"]

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._waiting += HEAD.pack(kind, len(payload)) + payload

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        received = self._received
        while len(received) >= HEAD.size:
            kind, size = HEAD.unpack_from(received)
            if len(received) < HEAD.size + size:
                return
            payload = bytes(received[HEAD.size : HEAD.size + size])
            del received[: HEAD.size + size]
            yield kind, payload

    def _move(self, secs: float) -> None:
        """Write to the keeper and read from it what is possible, at most ``secs`` from now."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | (select.POLLOUT if self._waiting else 0))
        events = dict(poll.poll(ceil(secs * 1000))).get(self._sock.fileno(), 0)
        try:
            if events & select.POLLOUT:
                del self._waiting[: self._sock.send(self._waiting[:CHUNK])]
            if not events & ~select.POLLOUT:
                return
            data, descriptors, *_ = socket.recv_fds(self._sock, CHUNK, _MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors += descriptors
        if not data:
            self._close()
            raise ProcessLostError(
                f"the keeper of child processes on {socket.gethostname()} has let go: it ended, "
                f"or another run of this task has taken the process over"
            )
        self._received += data

    def _close(self) -> None:
        pipes, self._pipes = self._pipes, None
        if pipes is not None:
            pipes.close()
        self._sock.close()


def folder_of(run: str) -> Path:
    """Return the folder of a run's keeper on this node, for this user."""
    key = hashlib.blake2b(f"{os.geteuid()}/{run}".encode(), digest_size=8)
    return Path(tempfile.gettempdir()) / f"sparkstorm-keeper-{key.hexdigest()}"


def end_keeper(run: str) -> None:
    """End this node's keeper of a run, and its children; nothing happens if there is none."""
    folder = folder_of(run)
    sock = _connected(folder)
    if sock is None:
        return
    with sock, suppress(OSError):
        payload = json.dumps({"token": (folder / TOKEN).read_text()}).encode()
        sock.setblocking(True)
        sock.settimeout(_DETACH_SECS)
        sock.sendall(HEAD.pack(b"E", len(payload)) + payload)
        while sock.recv(CHUNK):
            pass  # it answers when all of them have ended, and closes


def _source() -> bytes:
    """The keeper's program; the package may lie in an archive."""
    loader: Any = keeper.__loader__
    source: str = loader.get_source(keeper.__name__)
    return source.encode()


def _connected(folder: Path) -> socket.socket | None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(folder) as path:
            sock.connect(path)
    except OSError:
        sock.close()
        return None
    sock.setblocking(False)
    return sock


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A path to the socket that is short enough for one (about 100 bytes), wherever TMPDIR is."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) < 100 or not os.path.isdir("/proc/self/fd"):
        yield path
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET}"
    finally:
        os.close(handle)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_private(folder: Path) -> None:
    found = os.lstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ProcessLostError(
            f"{folder} belongs to somebody else or is open to others: remove it, or set TMPDIR"
        )


def _ended(how: dict[str, Any] | None) -> str:
    if how is None:
        return ""
    return describe_exit(how["code"], how["errors"])


def describe_exit(code: int, errors: str) -> str:
    r"""Say how a process ended, with the last of its standard error.

    >>> describe_exit(-9, "")
    'killed by signal 9'
    >>> describe_exit(1, "Traceback\nKeyError: 3")
    'exit code 1: KeyError: 3'
    """
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    lines = errors.strip().splitlines()
    return f"{how}: {lines[-1]}" if lines else how
