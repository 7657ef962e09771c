"""Unfinished messages of a hosted task: before a batch, in flight, or back with their spout."""

from collections.abc import Callable, Collection, Hashable, Iterator
from functools import partial
from typing import final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.sources.hosted.intake import Intake
from sparkstorm.sources.hosted.loads import PendingLoad
from sparkstorm.sources.hosted.spout import HostedSpout
from sparkstorm.sources.in_flight import InFlight
from sparkstorm.sources.originals import Original
from sparkstorm.sources.unfinished import (
    Content,
    MessageState,
    Named,
    ReadContent,
    Unfinished,
    message_id,
    message_name,
)

__all__ = ["HostedMessages"]


@final
class HostedMessages:
    """Names the messages of a hosted task; any thread may ask.

    Args:
        component: the spout.
        task: the spout's task.
        owner: the task as ``component/index``.
        intake: has the messages that wait for a batch.
        window: has the messages in flight.
        spout: has the messages that failed.
    """

    def __init__(
        self,
        component: str,
        task: int,
        owner: str,
        intake: Intake,
        window: InFlight[PendingLoad],
        spout: HostedSpout,
    ) -> None:
        self._component = component
        self._task = task
        self._owner = owner
        self._intake = intake
        self._window = window
        self._spout = spout
        self._attempts = spout.attempts

    def unfinished(self) -> Iterator[Unfinished]:
        """Yield all messages; those of later attempts one by one, since each began when it did."""
        for first, load, left in self._window.loads():
            if load.attempt == 1:
                yield self._made(
                    load.ids,
                    MessageState.RUNNING,
                    places=left,
                    since=load.originals.began,
                    first=first,
                    content=partial(_in_load, load),
                )
                continue
            for place in left:
                yield self._made(
                    load.ids,
                    MessageState.RUNNING,
                    places=place[None],
                    since=self._since(load, int(place)),
                    first=first,
                    attempt=load.attempt,
                    content=partial(_in_load, load),
                )
        for attempt, ids in self._intake.tracked_ids():
            failed = {msg_id: self._attempts.get(msg_id) for msg_id in ids} if attempt > 1 else {}
            fresh = [msg_id for msg_id in ids if failed.get(msg_id) is None]
            if fresh:
                yield self._made(fresh, MessageState.WAITING, attempt=attempt)
            for msg_id, before in failed.items():
                if before is not None:
                    yield self._made(
                        [msg_id],
                        MessageState.WAITING,
                        attempt=attempt,
                        since=before.began,
                        content=partial(_of_failed, before.original),
                    )
        for msg_id, known in self._attempts.resting():
            yield self._made(
                [msg_id],
                MessageState.RETRY,
                since=known.began,
                attempt=known.next.attempt,
                content=partial(_of_failed, known.original),
            )

    def named(self, roots: U64) -> Iterator[tuple[int, Named]]:
        """Yield the names of those of some ascending roots that are in flight."""
        for root, load, place in self._window.find(roots):
            yield (
                root,
                Named(
                    component=self._component,
                    task=self._task,
                    owner=self._owner,
                    name=message_name(load.ids[place]),
                    attempt=load.attempt,
                    since=self._since(load, place),
                ),
            )

    def hurry(self, ids: Collection[str], now: float) -> int:
        """Ask the spout to try failed messages at once; return how many it heeds."""
        failed = [msg_id for msg_id, _ in self._attempts.resting()]
        chosen = [one for one in failed if message_id(self._owner, message_name(one)) in ids]
        return self._spout.hurry(chosen)

    def _since(self, load: PendingLoad, place: int) -> float:
        began = self._attempts.began(load.ids[place]) if load.attempt > 1 else None
        return load.originals.began if began is None else began

    def _made(
        self,
        ids: list[Hashable],
        state: MessageState,
        *,
        places: np.typing.NDArray[np.int64] | None = None,
        attempt: int = 1,
        since: float = 0.0,
        first: int | None = None,
        content: Callable[[int], ReadContent] = lambda _: _not_yet,
    ) -> Unfinished:
        return Unfinished(
            component=self._component,
            task=self._task,
            owner=self._owner,
            state=state,
            places=np.arange(len(ids)) if places is None else places,
            name=ids.__getitem__,
            attempt=attempt,
            since=since,
            first=first,
            content=content,
        )


def _in_load(load: PendingLoad, place: int) -> ReadContent:
    return _of_failed(load.originals.of([place])[0], place)


def _of_failed(original: Original | None, _place: int) -> ReadContent:
    if original is None:
        return lambda: Content(note="the payload was forgotten: too many messages have failed")
    content = Content(stream=original.stream, values=original.values, direct=original.direct)
    return lambda: content


def _not_yet() -> Content:
    return Content(note="the message waits for its first batch: ask again when it runs")
