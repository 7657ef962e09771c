"""The processes of a run on this machine, as the kernel shows them."""

import contextlib
import os
import signal
from pathlib import Path

KINDS = ("driver", "executor", "jvm", "worker", "daemon")
"""What may be killed: the driver's Python, an executor, the driver's JVM, a Python worker, or the
daemon that workers are forked from."""


HERE = os.getpid()
"""The driver, if this is one."""


def find(driver: int, kind: str) -> list[int]:
    """The living processes of one kind that belong to a driver, by their numbers."""
    if kind == "driver":
        return [driver]
    family = _descendants(driver)
    match kind:
        case "jvm":
            return [pid for pid in family if "SparkSubmit" in _command(pid)]
        case "executor":
            return [pid for pid in family if "CoarseGrainedExecutorBackend" in _command(pid)]
        case "worker" | "daemon":
            forked = {pid for pid in family if "daemon pyspark.worker" in _command(pid)}
            return [pid for pid in forked if (_parent(pid) in forked) is (kind == "worker")]
        case _:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")


def kill(pid: int) -> bool:
    """Kill -9; returns whether the process was still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        children.setdefault(_parent(int(folder.name)), []).append(int(folder.name))
    found, rest = [], [root]
    while rest:
        mine = children.get(rest.pop(), [])
        found += mine
        rest += mine
    return sorted(found)


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""
