"""The driver's control: answers from the coordinator, and orders to the run."""

import threading
from collections.abc import Collection, Sequence
from typing import Any, Literal, Protocol, final

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.messages.listing import Wanted
from sparkstorm.clock import Clock
from sparkstorm.control.describing import (
    batch_view,
    partition_view,
    topology_view,
    window_view,
)
from sparkstorm.control.letters import Letters
from sparkstorm.control.lines import LastLines
from sparkstorm.control.registry import Entry
from sparkstorm.control.views import (
    GroupView,
    LettersView,
    LetterView,
    LineView,
    MessageDetailView,
    MessagesView,
    ReplayView,
    SituationView,
    TopologyView,
    WindowName,
    WindowView,
)
from sparkstorm.errors import ConfigError
from sparkstorm.metrics import Statistics
from sparkstorm.planning.plan import Plan
from sparkstorm.texts.logs import logger_of

__all__ = ["DriverControl", "Steering"]

_WINDOWS: dict[WindowName, int | None] = {
    "600": 600,
    "10800": 10_800,
    "86400": 86_400,
    ":all-time": None,
}

_logger = logger_of(__name__)

Status = Literal["ACTIVE", "INACTIVE", "KILLED"]


class Steering(Protocol):
    """The run, as far as it can be steered."""

    @property
    def status(self) -> Status:
        """Storm's word for how it is: ``ACTIVE``, ``INACTIVE`` or ``KILLED``."""
        ...

    def statistics(self) -> Statistics:
        """How the topology stands."""
        ...

    def activate(self) -> None:
        """Let spouts give messages again."""
        ...

    def deactivate(self) -> None:
        """Let spouts give no new messages."""
        ...

    def pause(self, spout: str, partitions: Collection[str] = ()) -> None:
        """Read no new messages of a spout, or of some of its partitions."""
        ...

    def resume(self, spout: str, partitions: Collection[str] = ()) -> None:
        """Read them again."""
        ...

    def stop(self, drain: bool = True, timeout: float = 60.0) -> Any:
        """End the run."""
        ...


@final
class DriverControl:
    """The :class:`~sparkstorm.control.control.Control` of a run in this process.

    Args:
        plan: the topology's plan.
        entry: its entry in the registry.
        coordinator: knows messages and metrics.
        run: is steered.
        letters: the dead letters.
        lines: the last lines of components.
        clock: the time.
    """

    def __init__(
        self,
        plan: Plan,
        entry: Entry,
        coordinator: Coordinator,
        run: Steering,
        letters: Letters,
        lines: LastLines,
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._entry = entry
        self._coordinator = coordinator
        self._inquiry = coordinator.inquiry
        self._run = run
        self._letters = letters
        self._lines = lines
        self._clock = clock

    # --- look ---

    def topology(self) -> TopologyView:
        """Return the topology as it was submitted."""
        return topology_view(self._plan, self._entry)

    def situation(self) -> SituationView:
        """Return how it stands."""
        stand, pace = self._run.statistics(), self._coordinator.pace()
        return SituationView(
            at=self._clock.wall(),
            status=self._run.status,
            emitted=stand.emitted,
            acked=stand.acked,
            failed=stand.failed,
            pending=stand.pending,
            waiting=pace.waiting,
            retried=stand.retried,
            given_up=stand.given_up,
            failures=stand.failures,
            dead_letters=stand.dead_letters,
            untracked_failed=stand.untracked_failed,
            rollbacks=stand.rollbacks,
            batches=stand.batches,
            batch_secs=stand.batch_secs,
            batch_messages=stand.batch_messages,
            running_batch=stand.running_batch,
            running_secs=stand.running_secs,
            polled_secs=pace.polled_secs,
            committed_secs=pace.committed_secs,
            spouts=dict(pace.spouts),
            partitions=[
                partition_view(spout, one)
                for spout, partitions in stand.partitions.items()
                for one in partitions
            ],
            batch_times=[batch_view(one) for one in stand.timings],
        )

    def window(self, window: WindowName) -> WindowView:
        """Return the metrics of a window."""
        if window not in _WINDOWS:
            raise ConfigError(f"there is no window {window!r}, only {', '.join(_WINDOWS)}")
        secs = _WINDOWS[window]
        age = max(1.0, self._clock.wall() - self._entry.holder.since)
        return window_view(
            self._plan,
            self._coordinator.window(secs),
            window,
            age if secs is None else min(float(secs), age),
        )

    def messages(
        self,
        *,
        state: str | None = None,
        spout: str | None = None,
        component: str | None = None,
        name: str | None = None,
        limit: int = 100,
    ) -> MessagesView:
        """Return unfinished messages, the oldest first."""
        return self._inquiry.messages(
            Wanted(state=state, spout=spout, component=component, name=name, limit=limit)
        )

    def message(self, message: str) -> MessageDetailView | None:
        """Return a message by its id, or by its name."""
        kept = self._inquiry.kept(message)
        wanted = Wanted(id=message if kept is None else kept.named.id, limit=1)
        listed = next(iter(self._inquiry.messages(wanted).messages), None)
        if kept is None and listed is None:
            return None
        if kept is None and listed is not None:
            return MessageDetailView(
                id=listed.id,
                spout=listed.spout,
                task=listed.task,
                name=listed.name,
                state=listed.state,
                attempts=[],
            )
        assert kept is not None  # noqa: S101 - for mypy: one of the two is there
        return MessageDetailView(
            id=kept.named.id,
            spout=kept.named.component,
            task=kept.named.task,
            name=kept.named.name,
            state=listed.state if listed is not None else (kept.state or "given up"),
            attempts=[attempt.view() for attempt in kept.attempts],
        )

    def copy(self, message: str) -> dict[str, Any] | None:
        """Return an unfinished message as the JSON of a dead letter."""
        found = self._inquiry.copy(message)
        return None if found is None else found.to_json()

    def lines(
        self,
        *,
        component: str | None = None,
        message: str | None = None,
        level: str | None = None,
        limit: int = 200,
    ) -> list[LineView]:
        """Return the last lines of components, the oldest first."""
        return self._lines.last(component, message, level, limit)

    def letter_groups(self) -> list[GroupView]:
        """Return the dead letters by kind."""
        return self._letters.groups()

    def letters(
        self, *, group: str | None = None, limit: int = 100, offset: int = 0
    ) -> LettersView:
        """Return dead letters, the newest first."""
        return self._letters.letters(group, limit, offset)

    def letter(self, letter: str) -> LetterView | None:
        """Return a dead letter."""
        return self._letters.letter(letter)

    # --- steer ---

    def activate(self) -> None:
        """Let spouts give messages again."""
        self._run.activate()

    def deactivate(self) -> None:
        """Let spouts give no new messages."""
        self._run.deactivate()

    def kill(self, wait_secs: float | None = None) -> None:
        """End the topology, on a thread: the answer does not wait for the end."""
        secs = self._plan.config.message_timeout_secs if wait_secs is None else wait_secs
        _logger.warning("the topology is to be killed, after at most %g s", secs)
        self._run.deactivate()
        threading.Thread(
            target=self._run.stop,
            kwargs={"drain": secs > 0, "timeout": secs},
            name="sparkstorm-kill",
            daemon=True,
        ).start()

    def pause(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Read no new messages of partitions, or of the whole spout."""
        self._run.pause(spout, partitions)

    def resume(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Read partitions again."""
        self._run.resume(spout, partitions)

    def retry(self, messages: Sequence[str]) -> int:
        """Let waiting messages be tried in the next batch."""
        return self._inquiry.hurry(frozenset(messages))

    def follow(self, name: str, *, spout: str | None = None) -> None:
        """Keep the trees of messages whose name contains a text."""
        self._inquiry.follow(name, spout)

    def unfollow(self, name: str) -> None:
        """Follow such messages no longer."""
        self._inquiry.unfollow(name)

    def followed(self) -> list[str]:
        """Return the texts that are followed."""
        return self._inquiry.followed()

    def set_level(self, component: str, level: str) -> None:
        """Let a component log from a level on."""
        self._inquiry.levels.set(component, level)

    def replay(
        self,
        *,
        letters: Sequence[str] = (),
        group: str | None = None,
        values: dict[str, Any] | None = None,
    ) -> str:
        """Emit dead letters again."""
        return self._letters.replay(letters, group, values)

    def replays(self) -> list[ReplayView]:
        """Return the requests of this run."""
        return self._letters.replays()

    def discard(self, *, letters: Sequence[str] = (), group: str | None = None) -> int:
        """Remove dead letters for good."""
        return self._letters.discard(letters, group)
