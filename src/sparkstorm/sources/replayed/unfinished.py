"""Unfinished replays: letters in flight, or waiting for another try."""

from collections.abc import Collection, Iterator
from typing import final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.in_flight import InFlight
from sparkstorm.sources.replayed.replayed_letter import ReplayedLetter
from sparkstorm.sources.retries import Retries
from sparkstorm.sources.unfinished import Content, MessageState, Named, Unfinished, message_name

__all__ = ["ReplayedMessages"]


@final
class ReplayedMessages:
    """The letters on their way, each named as the message that it once was.

    Args:
        plan: the topology's plan.

    Attributes:
        window: the letters in flight.
        retries: the letters that wait.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.window = InFlight[list[ReplayedLetter]]()
        self.retries = Retries[ReplayedLetter]()

    def unfinished(self) -> Iterator[Unfinished]:
        """Yield all letters, one by one."""
        for first, letters, left in self.window.loads():
            for place in left.tolist():
                yield self._made(letters[place], MessageState.RUNNING, first=first + place)
        for due, one in self.retries.waiting():
            yield self._made(one, MessageState.RETRY, due=due)

    def named(self, roots: U64) -> Iterator[tuple[int, Named]]:
        """Yield the names of those of some ascending roots that are in flight."""
        for root, letters, place in self.window.find(roots):
            yield root, self._named(letters[place])

    def hurry(self, ids: Collection[str], now: float) -> int:
        """Let letters that wait be due now; return how many."""
        return self.retries.hurry(lambda one: self._named(one).id in ids, now)

    def _named(self, one: ReplayedLetter) -> Named:
        return Named(
            component=one.letter.spout,
            task=one.task,
            owner=self._plan.name_of(one.task),
            name=message_name(one.letter.msg_id),
            attempt=one.attempt,
            since=one.letter.first_time,
        )

    def _made(
        self,
        one: ReplayedLetter,
        state: MessageState,
        *,
        first: int | None = None,
        due: float | None = None,
    ) -> Unfinished:
        return Unfinished(
            component=one.letter.spout,
            task=one.task,
            owner=self._plan.name_of(one.task),
            state=state,
            places=np.zeros(1, np.int64),
            name=lambda _: one.letter.msg_id,
            attempt=one.attempt,
            since=one.letter.first_time,
            first=first,
            due=due,
            content=lambda _: lambda: _content(one),
        )


def _content(one: ReplayedLetter) -> Content:
    letter = one.letter
    return Content(stream=letter.stream, values=letter.values, direct=one.direct, note=letter.note)
