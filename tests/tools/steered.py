"""A local runner that can be seen and steered from outside, as a run on Spark can."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import sparkstorm as ss
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.clock import Clock
from sparkstorm.control.publishing import Published, published
from sparkstorm.control.registry import Entry, Registry
from sparkstorm.dead_letters import LetterStore
from sparkstorm.testing import LocalRunner


class Steered:
    """A local runner as a run that can be steered."""

    def __init__(self, runner: LocalRunner) -> None:
        self.runner = runner
        self.status: Literal["ACTIVE", "INACTIVE", "KILLED"] = "ACTIVE"
        self.stopped: tuple[bool, float] | None = None

    def statistics(self) -> ss.Statistics:
        return self.runner.statistics()

    def activate(self) -> None:
        self.status = "ACTIVE"

    def deactivate(self) -> None:
        self.status = "INACTIVE"

    def pause(self, spout: str, partitions: Collection[str] = ()) -> None:
        self.runner.pause(spout, partitions)

    def resume(self, spout: str, partitions: Collection[str] = ()) -> None:
        self.runner.resume(spout, partitions)

    def stop(self, drain: bool = True, timeout: float = 60.0) -> None:
        self.status = "KILLED"
        self.stopped = drain, timeout


@contextmanager
def listed(
    folder: Path, runner: LocalRunner, store: LetterStore, clock: Clock
) -> Iterator[tuple[Steered, Entry]]:
    """List a runner in the registry of a folder; yield how it is steered, and its entry."""
    run = Steered(runner)
    parts = Published(
        plan=runner.plan,
        coordinator=runner.coordinator,
        run=run,
        store=store,
        clock=clock,
        holder=Holder.here("a1b2", clock.wall()),
        master="local[2]",
        checkpoint="/data/shop",
    )
    with published(parts, Registry(folder)) as entry:
        assert entry is not None
        yield run, entry
