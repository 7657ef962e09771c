"""The guardian: a small process that ends what another one has started, once that one is gone.

A process that is killed cannot end its children, and Ctrl-C does not reach a server with a session
of its own. So the guardian waits for the end of its parent, however it comes. Then it ends all
processes that bear the parent's mark in their environment, and their children.

Children inherit the mark, and hand it on to theirs: drivers, JVMs, Python workers, executors. A
child that asks for a mark of its own gets a guardian of its own, which ends when the child does.

This needs ``/proc``. On systems without it nothing is ended, as before.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["guarded"]

_MARK = "SPARKSTORM_GUARDED_BY"
_LOOK_SECS = 0.1
_GRACE_SECS = 2.0
"""How long a process has for an orderly end, before it is killed."""

_LONGEST_SECS = 30.0
"""How long to try: a process that the kernel holds back cannot be ended."""

_marks: dict[int, str] = {}
"""The mark of this process, by its id: a forked child needs another one."""


def guarded() -> dict[str, str]:
    """Return what to add to the environment of a process that must not outlive this one.

    The first call starts the guardian; later calls return the same.
    """
    pid = os.getpid()
    if pid not in _marks:
        _marks[pid] = f"{pid}-{uuid.uuid4().hex}"
        # Without a mark: the guardian has to outlive this process, and whoever ends this one.
        unmarked = {name: value for name, value in os.environ.items() if name != _MARK}
        guardian = subprocess.Popen(  # noqa: S603 - this file, under our own Python
            [sys.executable, "-I", "-S", __file__, str(pid), _marks[pid]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=unmarked,
            start_new_session=True,
        )
        guardian.returncode = 0  # nobody waits for it, so it is no forgotten child either
    return {_MARK: _marks[pid]}


def _guard(parent: int, mark: str) -> None:
    """Wait until the parent is gone, then end all that bears its mark."""
    # An outer guardian ends this one's parent, and may take this one for a mere child of it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.getppid() == parent:
        time.sleep(_LOOK_SECS)
    started = time.monotonic()
    while (age := time.monotonic() - started) < _LONGEST_SECS and (found := _family(mark)):
        for pid in found:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.kill(pid, signal.SIGTERM if age < _GRACE_SECS else signal.SIGKILL)
        time.sleep(_LOOK_SECS)


def _family(mark: str) -> set[int]:
    """Return the processes that bear a mark, and their descendants.

    Some servers write their title over their environment, but not over that of their parent.
    """
    processes = dict(_processes(f"{_MARK}={mark}".encode()))
    found = {pid for pid, (_, marked) in processes.items() if marked}
    while more := {pid for pid, (parent, _) in processes.items() if parent in found} - found:
        found |= more
    return found


def _processes(entry: bytes) -> Iterator[tuple[int, tuple[int, bool]]]:
    """Yield each living process, its parent, and whether its environment has the entry."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if state not in "ZX":
                marked = entry in (folder / "environ").read_bytes().split(b"\0")
                yield int(folder.name), (int(parent), marked)


if __name__ == "__main__":
    _guard(int(sys.argv[1]), sys.argv[2])
