"""Dead letters of spouts: made from the facts that a spout's task has of a message."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, final

from sparkstorm.dead_letters.letter import DeadLetter, letter_id
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue, QueueWriter
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.texts.showing import shown
from sparkstorm.verdicts import Failure

__all__ = ["Ended", "LetterWriter", "given_up_text", "given_up_texts"]

_MOST_LINES = 100
"""The most lines at a time on given-up messages: errors that quote their message are many texts."""


@final
class LetterWriter:
    """Writes the dead letters of one spout task."""

    def __init__(
        self, plan: Plan, component: str, task: int, dead_letters: DeadLetterQueue
    ) -> None:
        self._plan = plan
        self._component = component
        self._task = plan.index_of(task)
        self._dead_letters = dead_letters
        self.queue: QueueWriter = dead_letters.writer(plan.settings(component))

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._dead_letters.clock.wall()

    def letter(
        self,
        msg_id: Hashable,
        failure: Failure,
        *,
        stream: str,
        attempts: int,
        began: float,
        values: tuple[Any, ...] | None,
        note: str = "",
        direct: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Return the letter of a message that is given up now; it is not written yet."""
        topology = self._dead_letters.topology
        return DeadLetter(
            id=letter_id(
                topology=topology,
                spout=self._component,
                stream=stream,
                msg_id=msg_id,
                values=values,
            ),
            topology=topology,
            run=self._dead_letters.run,
            spout=self._component,
            task=self._task,
            stream=stream,
            fields=self._plan.stream(StreamKey(self._component, stream)).names,
            values=values,
            direct=None if direct is None else self._place_of(direct),
            msg_id=msg_id,
            source=source,
            failure=failure,
            attempts=attempts,
            first_time=began,
            last_time=self.now(),
            note=note,
        )

    def _place_of(self, task: int) -> tuple[str, int]:
        return self._plan.component_of(task), self._plan.index_of(task)


class Ended(NamedTuple):
    """Messages that were given up for one cause.

    Attributes:
        msg_id: the first message.
        messages: how many messages.
        attempts: how often they were tried.
        failure: how they failed the last time.
        letter: the first message's dead letter, if there is one.
    """

    msg_id: Hashable
    messages: int
    attempts: int
    failure: Failure
    letter: DeadLetter | None


def given_up_texts(ended: Iterable[Ended]) -> list[str]:
    """Return lines on given-up messages: one line for each cause, up to a limit of causes."""
    groups: dict[tuple[object, ...], Ended] = {}
    for one in ended:
        why = one.failure
        cause = (why.reason, why.component, why.message, one.attempts)
        first = groups.get(cause)
        same = one if first is None else first._replace(messages=first.messages + one.messages)
        groups[cause] = same
    causes = list(groups.values())
    texts, rest = [given_up_text(*one) for one in causes[:_MOST_LINES]], causes[_MOST_LINES:]
    if rest:
        messages = sum(one.messages for one in rest)
        texts.append(f"{messages:,} more messages were given up, for {len(rest):,} other causes")
    return texts


def given_up_text(
    msg_id: Hashable, count: int, attempts: int, failure: Failure, letter: DeadLetter | None
) -> str:
    """Return a line on given-up messages, of which ``msg_id`` is the first.

    >>> from sparkstorm.verdicts import Reason
    >>> given_up_text("a", 2, 1, Failure(reason=Reason.LOST, message="gone"), None)
    "messages 'a' and 1 more were given up after 1 try: lost: gone"
    """
    which = f"message {shown(msg_id)} was"
    if count > 1:
        which = f"messages {shown(msg_id)} and {count - 1:,} more were"
    tries = "1 try" if attempts == 1 else f"{attempts} tries"
    kept = "" if letter is None else f" (dead letter {letter.id})"
    return f"{which} given up after {tries}: {failure}{kept}"
