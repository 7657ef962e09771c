"""Copies of unfinished messages, as letters that are never written: for ``sparkstorm debug``."""

from typing import final

from sparkstorm.clock import Clock
from sparkstorm.dead_letters.letter import DeadLetter, letter_id
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.unfinished import Content, Unfinished
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Copier"]

_NEVER_FAILED = Failure(reason=Reason.FAILED, message="it has not failed so far")


@final
class Copier:
    """Makes letters of unfinished messages.

    Args:
        plan: the topology's plan.
        clock: the time.
    """

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock

    def copy(
        self, group: Unfinished, place: int, content: Content, failure: Failure | None
    ) -> DeadLetter:
        """Return a message as a letter.

        Args:
            group: the message and those beside it.
            place: its place there.
            content: its payload.
            failure: why its last attempt failed, if one has.
        """
        plan, msg_id, now = self._plan, group.name(place), self._clock.wall()
        direct = content.direct
        return DeadLetter(
            id=letter_id(
                topology=plan.name,
                spout=group.component,
                stream=content.stream,
                msg_id=msg_id,
                values=content.values,
            ),
            topology=plan.name,
            run="",
            spout=group.component,
            task=plan.index_of(group.task),
            stream=content.stream,
            fields=plan.stream(StreamKey(group.component, content.stream)).names,
            values=content.values,
            direct=None if direct is None else (plan.component_of(direct), plan.index_of(direct)),
            msg_id=msg_id,
            failure=failure or _NEVER_FAILED,
            attempts=group.attempt,
            first_time=group.since or now,
            last_time=now,
            note=content.note,
        )
