"""The owner of kept processes: the process that ends with the node's part of the run."""

import os
import subprocess
from pathlib import Path

__all__ = ["owner_of_worker"]


def owner_of_worker() -> int:
    """Return the executor's JVM: Spark's daemon, its child, forked this worker.

    Without a daemon the JVM is the parent itself. Without a JVM, return this process.
    """
    parent = os.getppid()
    before, name = _parent_and_name(parent)
    if name.startswith("java"):
        return parent
    return before if before > 1 and _parent_and_name(before)[1].startswith("java") else os.getpid()


def _parent_and_name(pid: int) -> tuple[int, str]:
    """Return a process's parent and program; 0 and an empty text if the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _asked(pid)
    head, _, rest = text.rpartition(")")
    return int(rest.split()[1]), head.partition("(")[2]


def _asked(pid: int) -> tuple[int, str]:
    """Ask ``ps``, for systems without /proc such as macOS."""
    found = subprocess.run(  # noqa: S603 - a number, and nothing else
        ["/bin/ps", "-o", "ppid=,comm=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(None, 1)
    return (int(found[0]), Path(found[1].strip()).name) if len(found) == 2 else (0, "")
