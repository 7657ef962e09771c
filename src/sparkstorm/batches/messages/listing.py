"""The listing: the unfinished messages, the oldest first."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from sparkstorm.acking.ledger import Ledger
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.messages.chronicle import Chronicle
from sparkstorm.control.views import MessageState as ShownState
from sparkstorm.control.views import MessagesView, MessageView
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.sources import Sources
from sparkstorm.sources.unfinished import MessageState, Unfinished, message_id, message_name

__all__ = ["Listing", "Wanted"]


_ID_CHARS = 16

_STATES: dict[MessageState, ShownState] = {
    MessageState.WAITING: "waiting",
    MessageState.RUNNING: "running",
    MessageState.OPEN: "open",
    MessageState.RETRY: "retry",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A filter of messages; None passes everything.

    Attributes:
        state: a state.
        spout: the messages' spout.
        component: a component that holds a tuple of the message, or in which it failed last.
        name: a part of the message's name.
        id: the message's id.
        limit: how many messages at most.
    """

    state: str | None = None
    spout: str | None = None
    component: str | None = None
    name: str | None = None
    id: str | None = None
    limit: int = 100

    @property
    def names_none(self) -> bool:
        """Whether the filter passes messages without a look at each."""
        return self.component is None and self.name is None and self.id is None


@final
class Listing:
    """Lists unfinished messages; not thread-safe.

    Args:
        plan: the topology's plan.
        sources: have the messages.
        ledger: knows which are open between batches.
        ended_roots: knows who holds these.
        chronicle: knows why they failed before.
    """

    def __init__(
        self,
        plan: Plan,
        sources: Sources,
        ledger: Ledger,
        ended_roots: EndedRoots,
        chronicle: Chronicle,
    ) -> None:
        self._plan = plan
        self._sources = sources
        self._ledger = ledger
        self._ended_roots = ended_roots
        self._chronicle = chronicle

    def messages(self, wanted: Wanted, now: float, wall: float) -> MessagesView:
        """Return the messages that pass a filter.

        Args:
            wanted: the filter.
            now: the time, on the clock of batches.
            wall: the time, in seconds since 1970.
        """
        groups = [one for one in self._groups() if wanted.spout in (None, one.component)]
        groups = [one for one in groups if wanted.state in (None, one.state)]
        groups.sort(key=lambda one: one.since or math.inf)
        found: list[MessageView] = []
        total = 0
        for group in groups:
            if wanted.names_none:
                total += len(group)
                room = wanted.limit - len(found)
                found += self._views(group, range(min(room, len(group))), now, wall)
                continue
            for view in self._views(group, range(len(group)), now, wall):
                if _passes(view, wanted):
                    total += 1
                    if len(found) < wanted.limit:
                        found.append(view)
        return MessagesView(total=total, messages=found)

    def find(self, message: str) -> tuple[Unfinished, int] | None:
        """Return an unfinished message by its id or name: those beside it, and its place."""
        is_id = len(message) == _ID_CHARS  # a look at a million names should make no digests
        for group in self._sources.unfinished():
            for place in group.places.tolist():
                name = message_name(group.name(place))
                if name == message or (is_id and message_id(group.owner, name) == message):
                    return group, place
        return None

    def _groups(self) -> Iterator[Unfinished]:
        """Yield the unfinished messages; those that are open after their batch apart."""
        is_any_open = self._ledger.open > 0
        for group in self._sources.unfinished():
            if not is_any_open or group.first is None or not len(group):
                yield group
                continue
            is_open = self._ledger.is_open(group.roots())
            if not is_open.any():
                yield group
                continue
            yield group.at(group.places[is_open], MessageState.OPEN)
            if not is_open.all():
                yield group.at(group.places[~is_open], group.state)

    def _views(
        self, group: Unfinished, slots: range, now: float, wall: float
    ) -> Iterator[MessageView]:
        holders = self._holders(group, slots)
        places = group.places[slots.start : slots.stop].tolist()
        for place in places:
            name = message_name(group.name(place))
            id_ = message_id(group.owner, name)
            kept = self._chronicle.get(id_)
            failure = None if kept is None else kept.failure
            held_by = holders(place)
            if failure is not None and failure.component and not held_by:
                held_by = [failure.component]
            yield MessageView(
                id=id_,
                spout=group.component,
                task=group.task,
                name=name,
                state=_STATES[group.state],
                attempt=group.attempt,
                age_secs=max(0.0, wall - group.since) if group.since else 0.0,
                due_secs=None if group.due is None else max(0.0, group.due - now),
                held_by=held_by,
                reason="" if failure is None else failure.reason.value,
                why="" if failure is None else failure.message,
            )

    def _holders(self, group: Unfinished, slots: range) -> Callable[[int], list[str]]:
        first = group.first
        if group.state is not MessageState.OPEN or first is None:
            return lambda place: []
        tasks: Mapping[int, list[int]] = self._ended_roots.holders(
            group.roots()[slots.start : slots.stop]
        )
        return lambda place: sorted(
            {self._plan.component_of(task) for task in tasks.get(first + place, ())}
        )


def _passes(view: MessageView, wanted: Wanted) -> bool:
    return (
        (wanted.component is None or wanted.component in view.held_by)
        and (wanted.name is None or wanted.name in view.name)
        and (wanted.id is None or wanted.id in (view.id, view.name))
    )
