"""Given-up messages of partitioned spouts, and their dead letters.

Only offsets passed the driver. So the payloads are read once more, or come from the spout's memory.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import cloudpickle

from sparkstorm.components.spout import PartitionedSpout, Split
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.letters import Ended, LetterWriter, given_up_texts
from sparkstorm.sources.partitioned.payloads import Payload, read_payloads, read_payloads_apart
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.tasks.report import LogLine, log_line
from sparkstorm.verdicts import Failure, Reason

__all__ = ["GivenUp", "SplitLetters"]


class _Source(NamedTuple):
    """A whole split, and whether to read it in a process of its own: reading may kill one."""

    data: str
    apart: bool


class GivenUp(NamedTuple):
    """Messages of one split that will not be tried again, all for the same reason.

    Attributes:
        split: the split.
        attempt: the number of the messages' attempt.
        since: when the first attempt began, in seconds since 1970.
        group: the positions in the split, and how each message failed.
    """

    split: Split
    attempt: int
    since: float
    group: list[tuple[int, Failure]]

    @property
    def failure(self) -> Failure:
        """The failure of the last attempt."""
        return replace(self.group[0][1], attempt=self.attempts)

    @property
    def attempts(self) -> int:
        """How often the messages were tried, repeats of their batch included."""
        return self.attempt + self.group[0][1].attempt - 1

    @property
    def positions(self) -> list[int]:
        """The positions of the messages in the split."""
        return [position for position, _ in self.group]

    @property
    def expired(self) -> bool:
        """Whether the source no longer has the messages."""
        return self.group[0][1].reason is Reason.EXPIRED

    @property
    def source(self) -> _Source:
        """The split to read for the payloads."""
        apart = self.group[0][1].reason is Reason.LOST
        return _Source(json.dumps(self.split.data, sort_keys=True), apart)

    def place(self, position: int) -> int:
        """Return a position in the whole split; the messages' split may be a part of it."""
        only = self.split.only
        return position if only is None else only[position]

    def kept(self, position: int) -> Any:
        """Return the spout's own copy of a message, if the spout has kept one."""
        return None if self.split.kept is None else self.split.kept[position]


@final
class SplitLetters:
    """Writes the dead letters of one task of a partitioned spout.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the spout's task.
        spout: names its messages.
        writer: makes letters, and knows where letters go.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        spout: PartitionedSpout,
        writer: LetterWriter,
    ) -> None:
        self._name, self._task = component, task
        self._component = plan.spec(component).component
        self._stream = plan.stream(StreamKey(component, DEFAULT_STREAM))
        self._spout = spout
        self._writer = writer

    def write(
        self, given_up: Sequence[GivenUp]
    ) -> tuple[list[tuple[GivenUp, DeadLetter | None]], list[GivenUp]]:
        """Write the letters; return each group with its first letter, if letters are kept at all.

        Returns also the groups without letters, whose source does not answer. The caller tries them
        once more rather than give them up without their payload.
        """
        if not given_up or not self._writer.queue.keeps:
            return [(one, None) for one in given_up], []
        payloads, away = self._read(given_up)
        now: list[GivenUp] = []
        later: list[GivenUp] = []
        for one in given_up:
            (later if one.source in away and not one.expired else now).append(one)
        letters = [self._letters_of(one, payloads) for one in now]
        self._writer.queue.write([letter for group in letters for letter in group])
        return [(one, group[0]) for one, group in zip(now, letters, strict=True)], later

    def tell(self, ended: Sequence[tuple[GivenUp, DeadLetter | None]]) -> None:
        """Tell people of groups that were given up, each with its first letter."""
        told = [
            Ended(
                self._spout.msg_id(one.split, one.positions[0]),
                len(one.group),
                one.attempts,
                one.group[0][1],
                letter,
            )
            for one, letter in ended
        ]
        for text in given_up_texts(told):
            log_line(LogLine(self._name, self._task, "error", text))

    def _read(
        self, given_up: Sequence[GivenUp]
    ) -> tuple[dict[tuple[_Source, int], Payload], set[_Source]]:
        """Read the payload of each message, by source and place.

        Messages that the source no longer has are not looked for. Returns also the sources that do
        not answer.
        """
        wanted: dict[_Source, dict[int, Any]] = {}
        for one in given_up:
            if not one.expired:
                here = {one.place(position): one.kept(position) for position in one.positions}
                wanted.setdefault(one.source, {}).update(here)
        spout: Any = cloudpickle.loads(cloudpickle.dumps(self._component))
        found: dict[tuple[_Source, int], Payload] = {}
        away: set[_Source] = set()
        for source, chosen in wanted.items():
            places = tuple(sorted(chosen))
            kept = tuple(chosen[place] for place in places)
            split = Split(count=len(places), data=json.loads(source.data), only=places, kept=kept)
            read = read_payloads_apart if source.apart else read_payloads
            try:
                payloads = read(spout, split, self._stream)
            except SpoutConnectionError:
                away.add(source)
                continue
            found.update(((source, place), p) for place, p in zip(places, payloads, strict=True))
        return found, away

    def _letters_of(
        self, one: GivenUp, payloads: Mapping[tuple[_Source, int], Payload]
    ) -> list[DeadLetter]:
        letters = []
        for position, failure in one.group:
            place = one.place(position)
            payload = payloads.get((one.source, place), _EXPIRED)
            letters.append(
                self._writer.letter(
                    self._spout.msg_id(one.split, position),
                    replace(failure, attempt=one.attempts),
                    stream=DEFAULT_STREAM,
                    attempts=one.attempts,
                    began=one.since,
                    values=payload.values,
                    note=payload.note,
                    source={**one.split.data, "position": place, **payload.origin},
                )
            )
        return letters


_EXPIRED = Payload(None, "the source no longer has the message")
