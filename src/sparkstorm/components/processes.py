"""Kept processes: child processes of a task that outlive the batch and the worker process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, final

__all__ = ["KeptProcess", "NodeProcesses", "ProcessOutput", "ProcessSpec"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """How a process is started.

    Attributes:
        command: the program and its arguments.
        cwd: the working directory; None for the worker's.
        env: all of its environment.
    """

    command: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutput:
    """Output of a process since the last look.

    Attributes:
        data: its standard output.
        again: standard output that an earlier run of this batch has read already. That run does
            not count, so whatever it did upon this output is undone.
        errors: its standard error.
        exit: how it ended: an exit code, or a negative signal; None while it runs.
    """

    data: bytes = b""
    again: bytes = b""
    errors: bytes = b""
    exit: int | None = None


class KeptProcess(Protocol):
    """A task's hold on a kept process, for one batch.

    A process belongs to a task and to the node: one *keeper* per node and run starts the process,
    and ends it with the run. Whichever worker process runs the task in a batch attaches to it, gets
    its pipes, and detaches at the end of the batch. Between attachments the keeper drains the
    output. One attachment at a time: a newer one cuts the older one off. If an attachment breaks
    without a detach, the process is ended, since nobody can know what was read of its output.
    """

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def identity(self) -> str:
        """A name that no other process has, on any node."""
        ...

    @property
    def is_new(self) -> bool:
        """Whether this attachment started it."""
        ...

    @property
    def attachment(self) -> int:
        """Counts the attachments to processes of this task on this node, from 1."""
        ...

    @property
    def ended(self) -> str:
        """How the process before this one ended while nobody was attached; empty if none did."""
        ...

    def write(self, data: bytes) -> None:
        """Queue bytes for its standard input; :meth:`wait` writes them."""
        ...

    def wait(self, secs: float) -> ProcessOutput:
        """Move bytes both ways; return as soon as there is any output, at most after ``secs``.

        Raises:
            ProcessLostError: the keeper is gone, or a newer attachment has taken the process over.
        """
        ...

    def detach(self, unread: int = 0) -> None:
        """Let the process go until the next batch; a second call does nothing.

        Args:
            unread: how many of the last bytes of its output are the beginning of something. They
                come first in the next attachment.
        """
        ...

    def kill(self) -> None:
        """End the process and detach: the next attachment starts another."""
        ...


class NodeProcesses(Protocol):
    """The kept processes of a node, as the engine hands them to a task's context."""

    def folder(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Return a folder of the run on this node, filled by whoever comes first."""
        ...

    def attach(self, name: str, spec: ProcessSpec, batch: int) -> KeptProcess:
        """Return a task's process, started if it does not run.

        Args:
            name: names the process among those of the run.
            spec: how it is started.
            batch: the batch that runs. Its number says whether output is read again. Of a negative
                number, outside of a batch, output is read once.

        Raises:
            ProcessLostError: the process or its keeper cannot be started.
        """
        ...
