"""Run benchmark processes in turns, one at a time, and compare the figures that they print."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
Figures = dict[str, object]

_PROC = Path("/proc")
_GONE_WITHIN_S = 15.0


class BenchmarkError(Exception):
    """A run failed, or printed no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One benchmark script and its arguments; the script prints one JSON line at the end."""

    module: str
    arguments: Sequence[str] = ()
    python: str = sys.executable
    timeout_s: float = 600.0

    def __str__(self) -> str:
        return " ".join([self.module, *self.arguments])

    def run(self) -> Figures:
        """Run the script to its end, with all processes that it starts, and return its figures.

        The figures include the machine's load just before: a high load means that others were busy.
        """
        load = os.getloadavg()[0]
        started = time.monotonic()
        out = self._output()
        wall_s = time.monotonic() - started
        return _last_json_line(out, self) | {"load_before": load, "wall_s": wall_s}

    def _output(self) -> str:
        path = [str(PROJECT), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            [self.python, "-m", self.module, *self.arguments],
            cwd=PROJECT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in path if p)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        with _ended_session(process):
            try:
                out, err = process.communicate(timeout=self.timeout_s)
            except subprocess.TimeoutExpired:
                raise BenchmarkError(f"{self} took more than {self.timeout_s:.0f} s") from None
        if process.returncode != 0:
            raise BenchmarkError(f"{self} ended with exit code {process.returncode}:\n{_tail(err)}")
        return out


@contextmanager
def _ended_session(process: subprocess.Popen[str]) -> Iterator[None]:
    """End all processes of the run: a JVM that is still stopping would slow the next run."""
    try:
        yield
        deadline = time.monotonic() + _GONE_WITHIN_S
        while _session_members(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        for pid in _session_members(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # the process ended by itself
        process.wait()


def _session_members(session: int) -> list[int]:
    """Return the living processes of a session.

    Spark's processes change their group, not the session.
    """
    members = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
            state, _, _, sid = text[text.rindex(")") + 2 :].split()[:4]
            if int(sid) == session and state not in "ZX":
                members.append(int(folder.name))
    return members


def _last_json_line(out: str, command: Command) -> Figures:
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise BenchmarkError(f"{command} printed no figures:\n{_tail(out)}")
    figures = json.loads(lines[-1])
    if not isinstance(figures, dict):
        raise BenchmarkError(f"{command} printed something else than figures: {lines[-1]}")
    return figures


def _tail(text: str, lines: int = 25) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])


def can_import(package: str, python: str) -> bool:
    """Whether another Python has a package."""
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def interleave(commands: Mapping[str, Command], rounds: int) -> Iterator[tuple[int, str, Figures]]:
    """Run all commands once, then all again, so that a slow minute hits all sides alike."""
    for number in range(rounds):
        for name, command in commands.items():
            yield number, name, command.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of some figures, with the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one figure."""
        return cls(median=statistics.median(values), low=min(values), high=max(values))


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return the ratios of two sides, round by round: a round's runs met a similar machine."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])
