"""The holder of a lease: a run, in a process, on a machine."""

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import final

__all__ = ["Holder"]

_START_FIELD = 19
"""The field of /proc/PID/stat with the process's start time, counted after the command's name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run as other runs see it; made by :meth:`here`.

    Attributes:
        run: the run's id.
        host: the name of its host, for people.
        machine: the scope of the pid: host, boot and pid namespace; empty if unknown.
        pid: its process.
        started: when the process started, in the kernel's count, since pids are reused.
        since: when the run began, in seconds since 1970.
    """

    run: str
    host: str = ""
    machine: str = ""
    pid: int = 0
    started: str = ""
    since: float = 0.0

    @classmethod
    def here(cls, run: str, since: float) -> "Holder":
        """Return this process as the holder."""
        host, pid = socket.gethostname(), os.getpid()
        return cls(
            run=run,
            host=host,
            machine=_machine(host),
            pid=pid,
            started=_started(pid),
            since=since,
        )

    @property
    def is_local(self) -> bool:
        """Whether this machine can see the holder's process, if it lives."""
        return bool(self.machine) and self.machine == _machine(socket.gethostname())

    def has_died(self) -> bool:
        """Whether the process has surely ended: it ran on this machine and is no longer there."""
        return self.is_local and _started(self.pid) != self.started

    def to_json(self) -> bytes:
        """Return the holder as bytes for :meth:`from_json`."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Holder":
        """Build a holder from the bytes of :meth:`to_json`."""
        return cls(**json.loads(data))

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"run {self.run} on host {self.host}, pid {self.pid}, since {since}"


def _machine(host: str) -> str:
    """Return the scope of pids; empty without Linux's /proc, so a dead holder just goes stale."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{host} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started; empty if there is none, or only a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[_START_FIELD]
