"""The dead letters of hosted messages: made of the messages as their spout emitted them."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.blame import FailedMessage
from sparkstorm.sources.letters import Ended, LetterWriter, given_up_texts
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.tasks.report import LogLine, log_line
from sparkstorm.verdicts import Failure

__all__ = ["HostedLetters"]


@final
class HostedLetters:
    """Writes the dead letters of one task of a hosted spout, and tells people of each cause.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the task's number.
        dead_letters: where dead letters go.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        dead_letters: DeadLetterQueue,
    ) -> None:
        self._writer = LetterWriter(plan, component, task, dead_letters)
        self._component = component
        self._task = task

    def log(self, level: str, text: str) -> None:
        """Show a line to people."""
        log_line(LogLine(self._component, self._task, level, text))

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._writer.now()

    def letter(
        self,
        msg_id: Hashable,
        failure: Failure,
        known: FailedMessage | None,
        source: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Return the letter of a message that is given up; ``known`` are its tries so far."""
        original = None if known is None else known.original
        return self._writer.letter(
            msg_id,
            failure,
            stream=DEFAULT_STREAM if original is None else original.stream,
            attempts=failure.attempt if known is None else known.attempts,
            began=self.now() if known is None else known.began,
            values=None if original is None else original.values,
            direct=None if original is None else original.direct,
            note=_FORGOTTEN if original is None and source is None else "",
            source=source,
        )

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Write letters, then tell people."""
        queue = self._writer.queue
        queue.write(letters)
        ended = [
            Ended(one.msg_id, 1, one.attempts, one.failure, one if queue.keeps else None)
            for one in letters
        ]
        for text in given_up_texts(ended):
            self.log("error", text)


_FORGOTTEN = (
    "the payload is no longer known: it was given up long after it had failed, or never did"
)
