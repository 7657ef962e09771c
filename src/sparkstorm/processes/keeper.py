r"""The keeper: a small program that owns the kept processes of one run on one node.

The first worker with a kept process starts the keeper (:mod:`sparkstorm.processes.client`). The
keeper listens on a Unix socket in a folder that only the user may enter. Workers name an *owner*
when they attach: an executor's JVM, or a driver. The keeper ends its children and itself when all
owners have ended, upon the order to end, and upon a signal.

Standard library only, and one file: workers start the program by path, without site-packages. So
a start takes some 30 ms.

While a worker is attached, the worker itself reads and writes the child's pipes: the keeper hands
over their descriptors. So a message takes no way round, and the keeper no time. The worker writes
down what it has read, in the child's journal, a file that both have open. Otherwise the keeper
drains the pipes, into the same journal.

Messages in both directions: a kind of one byte, the length in four, the payload.

============ ==== =================================================================================
from worker  A    attach: JSON with token, name, command, cwd, env, batch, owner
\            W    bytes for standard input that the worker has not written; before D
\            D    detach: JSON with size, of the journal, and read; answered by D
\            K    kill the process, whole group; answered by D
\            E    end the keeper: JSON with token; answered by D
from keeper  W    bytes for standard input that have the precedence; before H
\            R    standard error so far; before H
\            H    attached: JSON with pid, identity, is_new, attachment, ended (the one before),
\                 size and read of the journal, and pipes: which descriptors come with it
\            F    cannot start: JSON with error
\            X    the process has ended: JSON with code
============ ==== =================================================================================
"""

import contextlib
import ctypes
import fcntl
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
from io import FileIO
from typing import Any, Final

HEAD: Final = struct.Struct(">cI")
SOCKET: Final = "keeper.sock"
TOKEN: Final = "token"  # noqa: S105 - a file's name
CHUNK: Final = 256 * 1024
PIPE_BYTES: Final = 1024 * 1024
"""The size of a child's pipes, where the system lets us choose: a child runs ahead so far."""
MOST_UNREAD: Final = 64 * 1024 * 1024
"""Output that a child may write while nobody reads it."""
MOST_ERRORS: Final = 64 * 1024
"""The keeper keeps the last bytes of standard error while nobody reads."""
LOOK_SECS: Final = 0.25
GRACE_SECS: Final = 2.0
"""How long a child may take to end after its standard input is closed."""


class Journal:
    """Output of a child since the running batch began, in a file without a name.

    A run of the batch may have read some output and not count: the next run reads the same again.

    Attributes:
        size: how many bytes are in the file.
        read: how many of them the last run of the batch has read.
    """

    def __init__(self) -> None:
        self.file = unnamed_file()
        self.batch: int | None = None
        self.size = self.read = 0

    def add(self, data: bytes) -> None:
        """Take in output that nobody has read."""
        write_at(self.file.fileno(), data, self.size)
        self.size += len(data)

    def begin(self, batch: int) -> None:
        """Start an attachment. A new batch forgets output that earlier batches read."""
        if batch == self.batch:
            return
        self.batch = batch
        if self.read == 0:
            return
        before, size, at = self.file, self.size, self.read
        self.file, self.size, self.read = unnamed_file(), 0, 0
        while at < size:
            data = os.pread(before.fileno(), CHUNK, at)
            self.add(data)
            at += len(data)
        before.close()


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
        for pipe in self.pipes.values():
            assert pipe is not None  # noqa: S101 - all three were asked for
            os.set_blocking(pipe.fileno(), False)
            widen(pipe.fileno())

    def read(self, which: str) -> None:
        """Take in output, or its end."""
        pipe = self.pipes[which]
        if pipe is None or self.worker is not None:  # by another event of the same moment
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
            del self.errors[:-MOST_ERRORS]

    def write(self) -> None:
        """Write waiting bytes to the child, as far as the pipe takes them."""
        pipe = self.pipes["in"]
        if self.worker is not None:
            return
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
        """Notice the end, and move bytes while no worker does."""
        if self.code is None:
            self.code = self.process.poll()
            if self.code is not None:
                self.kill_group(signal.SIGKILL)
        if self.worker is not None:
            self.worker.tell_exit(self)
        elif self.code is not None:
            self.read_rest()
        else:
            self.write()
            self.watch()

    def watch(self) -> None:
        """Watch the pipes that may move, unless a worker does."""
        for which, pipe in self.pipes.items():
            if pipe is None:
                continue
            if self.worker is not None or not self.may_move(which):
                self.keeper.unselect(pipe)
            elif which == "in":
                self.keeper.select(pipe, selectors.EVENT_WRITE, self.write)
            else:
                self.keeper.select(pipe, selectors.EVENT_READ, self.read, which)

    def may_move(self, which: str) -> bool:
        """Whether bytes of a pipe are to be moved."""
        if which == "in":
            return bool(self.inbox)
        return which == "err" or self.journal.size - self.journal.read < MOST_UNREAD

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

    def hand_over(self, child: Child, **fields: object) -> None:
        """Send the child's descriptors, and whatever must come before its pipes are used."""
        if child.inbox:
            self.send(b"W", bytes(child.inbox))
            child.inbox.clear()
        if child.errors:
            self.send(b"R", bytes(child.errors))
            child.errors.clear()
        files = {name: pipe for name, pipe in child.pipes.items() if pipe is not None}
        files["journal"] = child.journal.file
        self.answer(b"H", **fields, pipes=list(files))
        try:
            # The descriptors go with the first byte: the rest may wait.
            sent = socket.send_fds(
                self.sock, [bytes(self.waiting)], [file.fileno() for file in files.values()]
            )
        except OSError:
            self.gone = True
        else:
            del self.waiting[:sent]

    def tell_exit(self, child: Child) -> None:
        """Tell once that the process has ended."""
        if child.code is not None and not self.told_exit:
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
        """Write waiting bytes."""
        try:
            while self.waiting:
                del self.waiting[: self.sock.send(self.waiting[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.waiting else 0)
        if not self.gone:
            self.keeper.select(self.sock, events, self.read)


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
                told = json.loads(payload)
                child.journal.size, child.journal.read = told["size"], told["read"]
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
        child.watch()
        worker.hand_over(
            child,
            pid=child.process.pid,
            identity=child.identity,
            is_new=is_new,
            attachment=self.attachments[name],
            ended=ended,
            size=child.journal.size,
            read=child.journal.read,
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


def unnamed_file() -> FileIO:
    """Return a file that is gone when the last who has it open closes it."""
    handle, path = tempfile.mkstemp()
    os.unlink(path)
    return FileIO(handle, "r+")


def write_at(file: int, data: bytes | bytearray, place: int) -> None:
    """Write bytes to a place of a file, all of them."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, place)
        rest, place = rest[written:], place + written


def widen(pipe: int) -> None:
    """Let a pipe hold more, where the system can do so."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


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
