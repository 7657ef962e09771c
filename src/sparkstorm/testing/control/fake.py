"""The fake control: answers as a driver would, and keeps account of its questions and orders."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.control.client import DriverGoneError
from sparkstorm.control.control import Control
from sparkstorm.control.views import (
    GroupView,
    LettersView,
    LetterView,
    LineView,
    MessageDetailView,
    MessagesView,
    MessageView,
    ReplayView,
    SituationView,
    TopologyView,
    WindowName,
    WindowView,
)
from sparkstorm.errors import ConfigError
from sparkstorm.testing.control.figures import (
    BATCH_SECS,
    batches_of,
    component_metrics,
    partitions_of,
)
from sparkstorm.testing.control.hostile import HOSTILE
from sparkstorm.testing.control.scene import topology_of
from sparkstorm.testing.control.stories import detail_of, letters_of, lines_of, messages_of

__all__ = ["FakeControl", "FakeRegistry"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@final
class FakeRegistry:
    """Running topologies for :func:`sparkstorm.ui.make_app`, by their ids."""

    def __init__(self, controls: Iterable["FakeControl"]) -> None:
        self.controls = {control.topology_id: control for control in controls}

    def topologies(self) -> Mapping[str, Control]:
        """Return the controls of all topologies."""
        return dict(self.controls)


@final
class FakeControl:
    """A control without a topology, for tests of whoever shows or steers topologies.

    Attributes:
        orders: what was ordered: the method's name and its arguments.
        asked: how often each question was asked.
        topology_id: the topology's id.
        gone: set to true, every call raises, as with a driver that has ended.

    >>> control = FakeControl("shop", messages=3)
    >>> [message.state for message in control.messages().messages]
    ['retry', 'open', 'running']
    >>> control.retry(["m00000"]), control.orders
    (1, [('retry', ['m00000'])])
    """

    def __init__(
        self,
        name: str = "shop",
        *,
        messages: int = 40,
        clock: Clock | None = None,
        hostile: bool = False,
        ran_secs: float = 5400.0,
    ) -> None:
        """Make a topology that has been running for a while.

        Args:
            name: the topology's name.
            messages: how many messages are unfinished.
            clock: tells the time, by which the figures grow.
            hostile: put hostile texts into all foreign fields.
            ran_secs: for how long it has been running.
        """
        self._clock = clock or SystemClock()
        self._texts: Sequence[str] = HOSTILE if hostile else ()
        self._topology = topology_of(name, self._clock.wall() - ran_secs)
        self._messages = messages_of(messages, self._texts)
        self._letters = letters_of(self._clock.wall(), self._texts)
        self.topology_id = self._topology.id
        self._status = "ACTIVE"
        self._halted: set[str] = set()
        self._followed: list[str] = []
        self._replays: list[ReplayView] = []
        self.orders: list[tuple[Any, ...]] = []
        self.asked: Counter[str] = Counter()
        self.gone = False

    def _ask(self, question: str) -> None:
        if self.gone:
            raise DriverGoneError(f"the driver of {self._topology.id} has ended")
        self.asked[question] += 1

    def _order(self, *order: Any) -> None:
        self._ask(order[0])
        self.orders.append(order)

    # --- look ---

    def topology(self) -> TopologyView:
        """Return the scene's topology."""
        self._ask("topology")
        return self._topology

    def situation(self) -> SituationView:
        """Return figures that have grown since the last call."""
        self._ask("situation")
        now = self._clock.wall()
        secs = now - self._topology.started
        done = int(430 * secs)
        batches = batches_of(secs, now)
        partitions = partitions_of(done)
        return SituationView(
            at=now,
            status=self._status,  # type: ignore[arg-type]
            emitted=done + done // 50,
            acked=done - len(self._letters) - len(self._messages),
            failed=done // 50,
            pending=len(self._messages),
            waiting=sum(message.state == "retry" for message in self._messages),
            retried=done // 51,
            given_up=len(self._letters),
            failures={"error": done // 52, "timeout": done // 900},
            dead_letters=len(self._letters),
            untracked_failed=0,
            rollbacks=1,
            batches=int(secs / BATCH_SECS),
            batch_secs=1.32,
            batch_messages=batches[-1].messages if batches else 0,
            running_batch=int(secs / BATCH_SECS),
            running_secs=secs % BATCH_SECS,
            polled_secs=secs % 0.5,
            committed_secs=secs % BATCH_SECS,
            partitions=[
                replace(one, halted=one.halted or one.partition in self._halted)
                for one in partitions
            ],
            batch_times=batches,
            spouts=dict.fromkeys(("orders", "clicks"), secs % 0.5),
        )

    def window(self, window: WindowName) -> WindowView:
        """Return the metrics of a window."""
        self._ask("window")
        ran = self._clock.wall() - self._topology.started
        secs = ran if window == ":all-time" else min(ran, float(window))
        return WindowView(
            window=window, secs=secs, components=component_metrics(self._topology, secs)
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
        self._ask("messages")
        found = [
            one
            for one in self._messages
            if state in (None, one.state)
            if spout in (None, one.spout)
            if component is None or component in one.held_by
            if name is None or name in one.name
        ]
        return MessagesView(total=len(found), messages=found[:limit])

    def message(self, message: str) -> MessageDetailView | None:
        """Return a message by its id or name."""
        self._ask("message")
        found = self._find(message)
        return None if found is None else detail_of(found, self._clock.wall())

    def _find(self, message: str) -> MessageView | None:
        named = (one for one in self._messages if message in (one.id, one.name))
        return next(named, None)

    def copy(self, message: str) -> dict[str, Any] | None:
        """Return nothing: made-up messages have no payload."""
        return None

    def lines(
        self,
        *,
        component: str | None = None,
        message: str | None = None,
        level: str | None = None,
        limit: int = 200,
    ) -> list[LineView]:
        """Return the last lines of components, the oldest first."""
        self._ask("lines")
        least = _LEVELS.index(level) if level in _LEVELS else 0
        found = [
            one
            for one in lines_of(self._clock.wall(), self._texts)
            if component in (None, one.component)
            if message in (None, one.message)
            if _LEVELS.index(one.level) >= least
        ]
        return found[-limit:]

    def letter_groups(self) -> list[GroupView]:
        """Return the dead letters by kind, the largest group first."""
        self._ask("letter_groups")
        counts = Counter(letter.group for letter in self._letters)
        return [
            GroupView(
                group=group,
                component=example.component,
                reason=example.reason,
                kind=example.why.split(":")[0],
                frame=example.frame,
                count=count,
                example=example,
            )
            for group, count in counts.most_common()
            for example in [next(one for one in self._letters if one.group == group)]
        ]

    def letters(
        self, *, group: str | None = None, limit: int = 100, offset: int = 0
    ) -> LettersView:
        """Return dead letters, the newest first."""
        self._ask("letters")
        found = self._chosen((), group) if group is not None else self._letters
        return LettersView(total=len(found), letters=found[offset : offset + limit])

    def letter(self, letter: str) -> LetterView | None:
        """Return a dead letter by its id."""
        self._ask("letter")
        return next((one for one in self._letters if one.id == letter), None)

    def followed(self) -> list[str]:
        """Return the texts that are followed."""
        self._ask("followed")
        return list(self._followed)

    def replays(self) -> list[ReplayView]:
        """Return the requests, the newest first."""
        self._ask("replays")
        return list(self._replays)

    # --- steer ---

    def activate(self) -> None:
        """Let spouts give messages again."""
        self._order("activate")
        self._status = "ACTIVE"

    def deactivate(self) -> None:
        """Let spouts rest."""
        self._order("deactivate")
        self._status = "INACTIVE"

    def kill(self, wait_secs: float | None = None) -> None:
        """End the topology."""
        self._order("kill", wait_secs)
        self._status = "KILLED"

    def pause(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Halt partitions."""
        self._order("pause", spout, list(partitions))
        self._spout(spout)
        self._halted.update(partitions)

    def resume(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Let partitions be read again."""
        self._order("resume", spout, list(partitions))
        self._spout(spout)
        self._halted.difference_update(partitions)

    def _spout(self, spout: str) -> None:
        if spout not in [one.id for one in self._topology.components if one.kind == "spout"]:
            raise ConfigError(f"there is no spout {spout!r}")

    def retry(self, messages: Sequence[str]) -> int:
        """Let waiting messages run."""
        self._order("retry", list(messages))
        waiting = {one.id for one in self._messages if one.state == "retry"} & set(messages)
        self._messages = [
            replace(one, state="running", due_secs=None) if one.id in waiting else one
            for one in self._messages
        ]
        return len(waiting)

    def follow(self, name: str, *, spout: str | None = None) -> None:
        """Follow a text."""
        self._order("follow", name, spout)
        self._followed.append(name)

    def unfollow(self, name: str) -> None:
        """Follow a text no longer."""
        self._order("unfollow", name)
        if name not in self._followed:
            raise ConfigError(f"nobody follows {name!r}")
        self._followed.remove(name)

    def set_level(self, component: str, level: str) -> None:
        """Take note of a level."""
        self._order("set_level", component, level)
        if level not in _LEVELS:
            raise ConfigError(f"{level!r} is no level: {', '.join(_LEVELS)}")
        if component not in [one.id for one in self._topology.components]:
            raise ConfigError(f"there is no component {component!r}")

    def replay(
        self,
        *,
        letters: Sequence[str] = (),
        group: str | None = None,
        values: dict[str, Any] | None = None,
    ) -> str:
        """Ack every letter that can be replayed, at once."""
        self._order("replay", list(letters), group, values)
        if values is not None and len(letters) != 1:
            raise ConfigError("new values are for a single letter")
        chosen = self._chosen(letters, group)
        acked = {one.id for one in chosen if one.replayable}
        left = {one.id: one.note for one in chosen if not one.replayable}
        left |= dict.fromkeys(set(letters) - {c.id for c in chosen}, "there is no such letter")
        name = f"replay-{len(self._replays) + 1}"
        self._replays.insert(
            0,
            ReplayView(
                name=name, asked=len(acked) + len(left), acked=len(acked), pending=0, left=left
            ),
        )
        self._letters = [one for one in self._letters if one.id not in acked]
        return name

    def discard(self, *, letters: Sequence[str] = (), group: str | None = None) -> int:
        """Remove letters."""
        self._order("discard", list(letters), group)
        chosen = {one.id for one in self._chosen(letters, group)}
        self._letters = [one for one in self._letters if one.id not in chosen]
        return len(chosen)

    def _chosen(self, letters: Sequence[str], group: str | None) -> list[LetterView]:
        return [one for one in self._letters if one.id in letters or one.group == group]
