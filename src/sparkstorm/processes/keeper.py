r"""The keeper: a small program that owns the kept processes of one run on one node.

The first worker with a kept process starts the keeper (:mod:`sparkstorm.processes.client`). The
keeper listens on a Unix socket in a folder that only the user may enter. Workers name an *owner*
when they attach: an executor's JVM, or a driver. The keeper ends its children and itself when all
owners have ended, upon the order to end, and upon a signal.

Standard library only, and one file: workers start the program by path, without site-packages. So
a start takes some 30 ms.

Messages in both directions: a kind of one byte, the length in four, the payload.

============ ==== =================================================================================
from worker  A    attach: JSON with token, name, command, cwd, env, batch, owner
\            W    bytes for standard input, written whole or not at all
\            D    detach: JSON with the number of unread bytes; answered by D
\            K    kill the process, whole group; answered by D
\            E    end the keeper: JSON with token; answered by D
from keeper  H    attached: JSON with pid, identity, is_new, attachment, ended (the one before)
\            F    cannot start: JSON with error
\            P    output that an earlier run of this batch has read already
\            O    output
\            R    standard error
\            X    the process has ended: JSON with code
============ ==== =================================================================================
"""

import contextlib
import ctypes
import json
import os
import secrets
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, Final

HEAD: Final = struct.Struct(">cI")
SOCKET: Final = "keeper.sock"
TOKEN: Final = "token"  # noqa: S105 - a file's name
CHUNK: Final = 256 * 1024
MOST_WAITING: Final = 4 * 1024 * 1024
"""So many bytes may wait for a child or a worker. Then the keeper stops reading the other end."""
MOST_UNREAD: Final = 64 * 1024 * 1024
"""Output that a child may write while nobody reads it."""
MOST_ERRORS: Final = 64 * 1024
"""The keeper keeps the last bytes of standard error while nobody reads."""
IN_MEMORY: Final = 8 * 1024 * 1024
LOOK_SECS: Final = 0.25
GRACE_SECS: Final = 2.0
"""How long a child may take to end after its standard input is closed."""


class Journal:
    """Output of a child since the running batch began; long output is spooled to the disk.

    A run of the batch may have read some output and not count: the next run reads the same again.
    """

    def __init__(self) -> None:
        self._file = spool()
        self.batch: int | None = None
        self.size = 0
        self.sent = 0
        self.consumed = 0

    @property
    def unsent(self) -> int:
        """Bytes that the attached worker has not been sent."""
        return self.size - self.sent

    def add(self, data: bytes) -> None:
        """Take in output."""
        self._file.seek(self.size)
        self._file.write(data)
        self.size += len(data)

    def begin(self, batch: int) -> None:
        """Start an attachment. A new batch forgets output that earlier batches read."""
        if batch != self.batch:
            rest = self._read(self.consumed, self.size - self.consumed)
            self._file.close()
            self._file = spool()
            self.batch, self.size, self.consumed = batch, 0, 0
            self.add(rest)
        self.sent = 0

    def take(self) -> tuple[bytes, bytes]:
        """Return the kind and the next bytes for the worker; empty if there are none."""
        if self.sent < self.consumed:
            kind, most = b"P", self.consumed - self.sent
        else:
            kind, most = b"O", self.unsent
        data = self._read(self.sent, min(most, CHUNK))
        self.sent += len(data)
        return kind, data

    def end(self, unread: int) -> None:
        """End an attachment in good order."""
        self.consumed = max(self.sent - unread, 0)

    def _read(self, start: int, count: int) -> bytes:
        self._file.seek(start)
        return self._file.read(count)


class Child:
    """A kept process with its pipes."""

    def __init__(self, keeper: "Keeper", name: str, request: dict[str, Any]) -> None:
        self.keeper = keeper
        self.name = name
        self.identity = secrets.token_hex(8)
        self.journal = Journal()
        self.errors = bytearray()
        self.inbox = bytearray()
        self.worker: Worker | None = None
        self.code: int | None = None
        self.process = subprocess.Popen(  # noqa: S603 - the user's own command
            request["command"],
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=keeper.before_exec,
        )
        self.pipes = {"in": self.process.stdin, "out": self.process.stdout}
        self.pipes["err"] = self.process.stderr
        for name_of_pipe, pipe in self.pipes.items():
            assert pipe is not None  # noqa: S101 - all three were asked for
            os.set_blocking(pipe.fileno(), False)
            if name_of_pipe != "in":
                keeper.select(pipe, selectors.EVENT_READ, self.read, name_of_pipe)

    def read(self, which: str) -> None:
        """Take in output, or its end."""
        pipe = self.pipes[which]
        if pipe is None:  # another event of the same moment has closed it
            return
        try:
            data = os.read(pipe.fileno(), CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close_pipe(which)
        elif which == "out":
            self.journal.add(data)
            self.read("err")  # some of it was written before this output: it is told before
        else:
            self.errors += data
            if self.worker is None:
                del self.errors[:-MOST_ERRORS]

    def write(self) -> None:
        """Write waiting bytes to the child, as far as the pipe takes them."""
        pipe = self.pipes["in"]
        if pipe is None:
            self.inbox.clear()
            return
        try:
            while self.inbox:
                del self.inbox[: os.write(pipe.fileno(), self.inbox[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # it has closed its input, or ended: its end is told by its output
            self.close_pipe("in")
            self.inbox.clear()

    def close_pipe(self, which: str) -> None:
        """Close a pipe, once."""
        pipe = self.pipes[which]
        if pipe is not None:
            self.keeper.unselect(pipe)
            with contextlib.suppress(OSError):
                pipe.close()
            self.pipes[which] = None

    def settle(self) -> None:
        """Pass output on, watch the pipes that may move, notice the end."""
        self.write()
        if self.inbox and self.pipes["in"] is not None:
            self.keeper.select(self.pipes["in"], selectors.EVENT_WRITE, self.write)
        elif self.pipes["in"] is not None:
            self.keeper.unselect(self.pipes["in"])
        if self.pipes["out"] is not None:
            if self.journal.unsent < MOST_UNREAD:
                self.keeper.select(self.pipes["out"], selectors.EVENT_READ, self.read, "out")
            else:
                self.keeper.unselect(self.pipes["out"])
        if self.code is None:
            self.code = self.process.poll()
            if self.code is not None:
                self.read_rest()
        if self.worker is not None:
            self.worker.pass_on(self)

    def read_rest(self) -> None:
        """Read the rest of the pipes of an ended process, and wait for no more.

        A grandchild may hold the pipes open for ever.
        """
        for which in ("out", "err"):
            for _ in range(1024):
                if self.pipes[which] is None:
                    break
                before = self.journal.size + len(self.errors)
                self.read(which)
                if self.journal.size + len(self.errors) == before:
                    break
            self.close_pipe(which)
        self.close_pipe("in")
        self.kill_group(signal.SIGKILL)

    def kill_group(self, number: int) -> None:
        """Signal the process and its descendants."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End the process now."""
        self.kill_group(signal.SIGKILL)
        self.code = self.process.wait()
        for which in self.pipes:
            self.close_pipe(which)


class Worker:
    """A connection of a worker process."""

    def __init__(self, keeper: "Keeper", sock: socket.socket) -> None:
        self.keeper = keeper
        self.sock = sock
        self.received = bytearray()
        self.waiting = bytearray()
        self.child: Child | None = None
        self.told_exit = False
        self.gone = False
        sock.setblocking(False)
        keeper.select(sock, selectors.EVENT_READ, self.read)

    def send(self, kind: bytes, payload: bytes) -> None:
        """Queue a message."""
        self.waiting += HEAD.pack(kind, len(payload)) + payload

    def answer(self, kind: bytes, **fields: object) -> None:
        """Queue a message of JSON."""
        self.send(kind, json.dumps(fields).encode())

    def pass_on(self, child: Child) -> None:
        """Send the child's output, as far as the worker keeps up."""
        if child.errors:
            self.send(b"R", bytes(child.errors))
            child.errors.clear()
        while len(self.waiting) < MOST_WAITING:
            kind, data = child.journal.take()
            if not data:
                break
            self.send(kind, data)
        if child.code is not None and not self.told_exit and not child.journal.unsent:
            self.told_exit = True
            self.answer(b"X", code=child.code)

    def read(self) -> None:
        """Take in requests."""
        try:
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.gone = True
            return
        self.received += data
        while len(self.received) >= HEAD.size and not self.gone:
            kind, size = HEAD.unpack_from(self.received)
            if len(self.received) < HEAD.size + size:
                break
            payload = bytes(self.received[HEAD.size : HEAD.size + size])
            del self.received[: HEAD.size + size]
            self.keeper.handle(self, kind, payload)

    def settle(self) -> None:
        """Write waiting bytes; read on only if the child keeps up."""
        try:
            while self.waiting:
                del self.waiting[: self.sock.send(self.waiting[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
        events = selectors.EVENT_WRITE if self.waiting else 0
        if self.child is None or len(self.child.inbox) < MOST_WAITING:
            events |= selectors.EVENT_READ
        if events and not self.gone:
            self.keeper.select(self.sock, events, self.ready)
        else:
            self.keeper.unselect(self.sock)

    def ready(self) -> None:
        """Something moves: ``settle`` writes."""
        self.read()


class Keeper:
    """The program: owners, children, workers, and the loop."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, TOKEN)) as file:
            self.token = file.read()
        self.selector = selectors.DefaultSelector()
        self.children: dict[str, Child] = {}
        self.attachments: dict[str, int] = {}
        self.workers: list[Worker] = []
        self.owners: dict[int, str] = {}
        self.ending = False
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        here = os.getcwd()
        os.chdir(folder)  # a relative path, since absolute ones may be too long for a socket
        self.listener.bind(SOCKET)
        os.chdir(here)
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.select(self.listener, selectors.EVENT_READ, self.accept)
        self.wake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        self.select(self.wake, selectors.EVENT_READ, lambda: os.read(self.wake, 4096))
        self.prctl = _prctl()

    def before_exec(self) -> None:
        """In the child: die with the keeper, however the keeper ends; take signals as usual."""
        if self.prctl is not None:
            self.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)

    def select(self, file: Any, events: int, *call: Any) -> None:
        """Watch a file; a second call with the same events changes nothing."""
        try:
            key = self.selector.get_key(file)
        except (KeyError, ValueError):
            self.selector.register(file, events, call)
            return
        if key.events != events:
            self.selector.modify(file, events, call)

    def unselect(self, file: Any) -> None:
        """Watch a file no longer."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(file)

    def accept(self) -> None:
        """A worker connects."""
        with contextlib.suppress(BlockingIOError):
            sock, _ = self.listener.accept()
            self.workers.append(Worker(self, sock))

    def handle(self, worker: Worker, kind: bytes, payload: bytes) -> None:
        """Do what a worker requests."""
        child = worker.child
        if kind in (b"A", b"E"):
            request = json.loads(payload)
            if request.get("token") != self.token:
                worker.gone = True
            elif kind == b"E":
                self.ending = True
            else:
                self.attach(worker, request)
        elif child is None or child.worker is not worker:
            worker.gone = True
        elif kind == b"W":
            child.inbox += payload
        else:
            if kind == b"D":
                child.journal.end(json.loads(payload)["unread"])
            else:
                self.drop(child)
            child.worker = worker.child = None
            worker.answer(b"D")

    def attach(self, worker: Worker, request: dict[str, Any]) -> None:
        """Give a worker its task's process."""
        name, owner, ended = request["name"], request["owner"], None
        self.owners.setdefault(owner, start_of(owner))
        child = self.children.get(name)
        if child is not None and child.worker is not None:
            child.worker.gone = True  # a run that Spark has given up
            self.drop(child)
        elif child is not None and child.process.poll() is not None:
            child.settle()
            ended = {"code": child.code, "errors": child.errors[-2000:].decode(errors="replace")}
            self.drop(child)
        child = self.children.get(name)
        is_new = child is None
        if child is None:
            try:
                child = self.children[name] = Child(self, name, request)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                worker.answer(b"F", error=str(error))
                return
        self.attachments[name] = self.attachments.get(name, 0) + 1
        child.journal.begin(request["batch"])
        child.worker, worker.child = worker, child
        worker.answer(
            b"H",
            pid=child.process.pid,
            identity=child.identity,
            is_new=is_new,
            attachment=self.attachments[name],
            ended=ended,
        )

    def drop(self, child: Child) -> None:
        """End and forget a child."""
        child.kill()
        if self.children.get(child.name) is child:
            del self.children[child.name]

    def settle(self) -> None:
        """Move bytes on, and drop ended children and closed connections."""
        for child in list(self.children.values()):
            child.settle()
        for worker in list(self.workers):
            worker.settle()
            if worker.gone:
                self.workers.remove(worker)
                self.unselect(worker.sock)
                worker.sock.close()
                if worker.child is not None and worker.child.worker is worker:
                    self.drop(worker.child)  # nobody knows what was read of its output

    def has_owner(self) -> bool:
        """Whether an owner of the children lives."""
        for pid, started in list(self.owners.items()):
            if start_of(pid) != started or not started:
                del self.owners[pid]
        return bool(self.owners)

    def run(self) -> None:
        """Serve until the keeper is no longer needed."""
        looked, began = 0.0, time.monotonic()
        while not self.ending:
            for key, _ in self.selector.select(LOOK_SECS):
                call, *args = key.data
                call(*args)
            self.settle()
            now = time.monotonic()
            if now - looked > LOOK_SECS:
                looked = now
                # The first worker has half a minute to name an owner.
                if not self.has_owner() and now - began > (30.0 if not self.attachments else 0.0):
                    break

    def close(self) -> None:
        """End all children: close the inputs, wait a little, then kill."""
        self.listener.close()
        for child in self.children.values():
            child.close_pipe("in")
        deadline = time.monotonic() + GRACE_SECS
        while time.monotonic() < deadline and any(
            child.process.poll() is None for child in self.children.values()
        ):
            for child in self.children.values():
                for which in ("out", "err"):
                    if child.pipes[which] is not None:
                        child.read(which)
            time.sleep(0.01)
        for child in self.children.values():
            child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(f"{self.folder}.lock")
        for worker in self.workers:
            worker.answer(b"D")
            worker.settle()


def spool() -> IO[bytes]:
    """Return a temporary file that moves to the disk as it grows."""
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)


def start_of(pid: int) -> str:
    """When a process started, in the system's own count; empty if no such process lives."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:
        pass
    if os.path.isdir("/proc/self"):
        return ""
    try:  # no such files here, on macOS say
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "?"
    return "?"


def _prctl() -> Any:
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


def main() -> None:
    """Run the keeper of the folder on the command line, detached from the starting worker."""
    folder = sys.argv[1]
    keeper = Keeper(folder)
    if os.fork():
        os._exit(0)  # the socket is there: whoever waits for this process may connect
    os.setsid()

    def stop(*_: object) -> None:
        keeper.ending = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a child's end wakes the loop
    try:
        keeper.run()
    finally:
        keeper.close()


if __name__ == "__main__":
    main()
