"""Replayed letters: dead letters as messages of their spouts."""

from dataclasses import dataclass
from typing import Any, final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.store import Places
from sparkstorm.packets.columns import CoderError
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.packing import encode_rows
from sparkstorm.texts.logs import logger_of

__all__ = ["LetterReader", "MisfitError", "ReplayedLetter"]

_logger = logger_of("sparkstorm.dead_letters")


@final
@dataclass(frozen=True, slots=True)
class ReplayedLetter:
    """One letter on its way through the topology.

    Attributes:
        letter: the letter.
        places: the files with the letter; None if an earlier driver began the replay.
        task: the spout's task that the message belongs to.
        row: the values of the message.
        direct: the task that the message goes to, on a direct stream.
        attempt: which try of the replay this is.
    """

    letter: DeadLetter
    places: Places | None
    task: int
    row: tuple[Any, ...]
    direct: int | None
    attempt: int = 1
    width = 0
    messages = 1

    def cut(self, count: int) -> "tuple[ReplayedLetter, ReplayedLetter | None]":
        """Return itself: there is nothing to cut."""
        return self, None


@final
class LetterReader:
    """Makes letters messages of a topology, if they fit.

    Args:
        plan: the topology's plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._spouts = {spec.id for spec in plan.topology.spouts}

    def read(self, letter: DeadLetter, places: Places | None = None) -> ReplayedLetter | None:
        """Return a letter as a message of the topology, or say why it cannot be and return None."""
        try:
            return self.message(letter, places)
        except MisfitError as error:
            _logger.error("dead letter %s cannot be replayed, it stays: %s", letter.id, error)
            return None

    def message(self, letter: DeadLetter, places: Places | None = None) -> ReplayedLetter:
        """Return a letter as a message of the topology.

        Raises:
            MisfitError: the letter does not fit the topology.
        """
        key = StreamKey(letter.spout, letter.stream)
        tasks = self._plan.tasks.get(letter.spout)
        if tasks is None or letter.spout not in self._spouts:
            raise MisfitError(f"the topology has no spout {letter.spout!r} any more")
        if letter.stream not in self._plan.spec(letter.spout).streams:
            raise MisfitError(f"the spout has no stream {letter.stream!r} any more")
        stream, payload = self._plan.stream(key), letter.payload
        if payload is None or not letter.replayable:
            raise MisfitError(
                letter.note or "its payload holds values that cannot be written as JSON"
            )
        if set(stream.names) != set(payload):
            raise MisfitError(f"the stream has other fields now: {', '.join(stream.names)}")
        row = tuple(payload[name] for name in stream.names)
        try:
            encode_rows(stream, [row])
        except CoderError as error:
            raise MisfitError(str(error)) from error
        direct = self._direct(letter) if stream.direct else None
        return ReplayedLetter(letter, places, tasks[letter.task % len(tasks)], row, direct)

    def _direct(self, letter: DeadLetter) -> int:
        component, index = letter.direct or ("", 0)
        tasks = self._plan.tasks.get(component)
        if tasks is None or index >= len(tasks):
            raise MisfitError(f"the task {index} of {component!r} that it went to is gone")
        return tasks[index]


class MisfitError(Exception):
    """A letter does not fit this topology."""
