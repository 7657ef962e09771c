"""Publishing: a driver lists its topology in the registry, and answers until its run ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.clock import Clock
from sparkstorm.control.driver_control import DriverControl, Steering
from sparkstorm.control.letters import Letters
from sparkstorm.control.lines import LastLines
from sparkstorm.control.registry import Entry, Registry
from sparkstorm.control.server import ControlServer
from sparkstorm.dead_letters.origin import Origin
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.errors import EnvironmentFault
from sparkstorm.planning.plan import Plan
from sparkstorm.texts.logs import logger_of

__all__ = ["Published", "published"]

_logger = logger_of(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The parts of a run that answers are made of.

    Attributes:
        plan: the topology's plan.
        coordinator: knows messages and metrics.
        run: is steered.
        store: has the dead letters.
        clock: the time.
        holder: the driver's process, and the run's id.
        master: where Spark runs.
        checkpoint: the checkpoint's place; empty for a temporary one.
        origin: how the command line loaded the topology; None if a program has made it.
    """

    plan: Plan
    coordinator: Coordinator
    run: Steering
    store: LetterStore
    clock: Clock
    holder: Holder
    master: str = ""
    checkpoint: str = ""
    origin: Origin | None = None

    def entry(self) -> Entry:
        """Return the topology's entry in the registry."""
        return Entry(
            id=f"{self.plan.name}-{self.holder.run}",
            name=self.plan.name,
            holder=self.holder,
            master=self.master,
            checkpoint=_absolute(self.checkpoint),
            origin=None if self.origin is None else self.origin.without_secrets().to_json(),
        )


def _absolute(checkpoint: str) -> str:
    """Return a local folder as a whole path: other commands run in other folders."""
    if not checkpoint or "://" in checkpoint or checkpoint.startswith("file:"):
        return checkpoint
    return str(Path(checkpoint).absolute())


@contextmanager
def published(parts: Published, registry: Registry | None = None) -> Iterator[Entry | None]:
    """Let other processes of this user see and steer a run during a ``with`` block.

    Yields the entry in the registry. Without a registry that can be written the run goes on unseen:
    a warning says why, and None is yielded.
    """
    lines = LastLines(parts.plan.name)
    lines.attach()
    try:
        registry = registry or Registry()
        entry = registry.add(parts.entry())
        server = _server(parts, entry, lines)
    except (OSError, EnvironmentFault) as error:
        _logger.warning("nobody will see or steer this run from outside: %s", error)
        try:
            yield None
        finally:
            lines.detach()
        return
    server.start()
    try:
        yield entry
    finally:
        server.close()
        registry.remove(entry)
        lines.detach()


def _server(parts: Published, entry: Entry, lines: LastLines) -> ControlServer:
    acked = parts.coordinator.inquiry.acked_letters
    letters = Letters(parts.plan.name, parts.store, parts.clock, acked)
    control = DriverControl(
        parts.plan, entry, parts.coordinator, parts.run, letters, lines, parts.clock
    )
    return ControlServer(entry.socket, control)
