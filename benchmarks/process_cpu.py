"""CPU seconds of a process and of all processes that it started: JVM, Python workers and all."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")

# Tells two processes apart when a process id is used again: the id and the start time.
_ProcessKey = tuple[int, int]


class TreeCpu:
    """CPU seconds used so far by a tree of processes, read from ``/proc``.

    Each call of ``sample`` walks the tree and keeps the last figure of every process it ever saw.
    So a worker that ended still counts (Spark's worker daemon ignores SIGCHLD: the kernel does not
    add its children's time to the daemon's), and so does a process whose parent ended. CPU time
    that a process used between the last sample and its end is missing.
    """

    def __init__(self, root_pid: int | None = None) -> None:
        self._root_pid = os.getpid() if root_pid is None else root_pid
        self._used: dict[_ProcessKey, float] = {}

    def __repr__(self) -> str:
        return f"TreeCpu(root_pid={self._root_pid}, processes={len(self._used)})"

    def sample(self) -> float:
        """Read the whole tree once and return the CPU seconds used so far."""
        alive = _read_all()
        for pid in self._tree(alive):
            stat = alive[pid]
            self._used[(pid, stat.start_time)] = stat.cpu_s
        return sum(self._used.values())

    def _tree(self, alive: "dict[int, _Stat]") -> set[int]:
        """Return the living processes of the tree, orphans included."""
        children: dict[int, list[int]] = {}
        for pid, stat in alive.items():
            children.setdefault(stat.parent, []).append(pid)
        known = [
            pid for pid, start in self._used if pid in alive and alive[pid].start_time == start
        ]
        waiting = known + ([self._root_pid] if self._root_pid in alive else [])
        found: set[int] = set()
        while waiting:
            pid = waiting.pop()
            if pid not in found:
                found.add(pid)
                waiting.extend(children.get(pid, ()))
        return found


class _Stat:
    """The fields of ``/proc/<pid>/stat`` that matter here."""

    __slots__ = ("cpu_s", "parent", "start_time")

    def __init__(self, text: str) -> None:
        # The second field is the command in brackets and may hold spaces: count from behind it.
        fields = text[text.rindex(")") + 2 :].split()
        self.parent = int(fields[1])
        self.cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        self.start_time = int(fields[19])


def _read_all() -> dict[int, _Stat]:
    stats: dict[int, _Stat] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                stats[int(folder.name)] = _Stat((folder / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # the process ended meanwhile
    return stats
