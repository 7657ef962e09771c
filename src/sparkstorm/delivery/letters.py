"""Dead letters as delivery writes them: made from what a spout's task knows of a message."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, final

from sparkstorm.dead_letters.letter import DeadLetter, letter_id
from sparkstorm.dead_letters.office import DeadLetterOffice, Desk
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.showing import shown
from sparkstorm.verdicts import Failure

__all__ = ["LetterWriter", "alike", "given_up_text"]


@final
class LetterWriter:
    """Writes the dead letters of one spout task."""

    def __init__(self, plan: Plan, component: str, task: int, office: DeadLetterOffice) -> None:
        self._plan = plan
        self._component = component
        self._task = plan.index_of(task)
        self._office = office
        self.desk: Desk = office.desk(plan.settings(component))

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._office.clock.wall()

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
        """Return the letter of a message that was given up now; it is not written yet."""
        topology = self._office.topology
        return DeadLetter(
            id=letter_id(
                topology=topology,
                spout=self._component,
                stream=stream,
                msg_id=msg_id,
                values=values,
            ),
            topology=topology,
            run=self._office.run,
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


def alike(letters: Iterable[DeadLetter]) -> list[list[DeadLetter]]:
    """Return letters in groups that have the same cause, so that people are told once of each."""
    groups: dict[tuple[object, ...], list[DeadLetter]] = {}
    for letter in letters:
        why = letter.failure
        cause = (why.reason, why.component, why.message, letter.attempts)
        groups.setdefault(cause, []).append(letter)
    return list(groups.values())


def given_up_text(
    msg_id: Hashable, count: int, attempts: int, failure: Failure, letter: DeadLetter | None
) -> str:
    """Say that messages were given up, of which ``msg_id`` is the first.

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
