"""Messages of partitioned spouts that were given up, and the dead letters that they become.

Only offsets passed the driver, so the payloads are read once more, or come from what the spout has
kept of them.
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
from sparkstorm.sources.letters import LetterWriter
from sparkstorm.sources.partitioned.payloads import Payload, read_payloads, read_payloads_apart
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.verdicts import Failure, Reason

__all__ = ["GivenUp", "SplitLetters"]


class _Source(NamedTuple):
    """A whole split, and whether to read it in a process of its own: it may be what kills one."""

    data: str
    apart: bool


class GivenUp(NamedTuple):
    """Messages of one split that will not be tried again, all for the same reason.

    Attributes:
        split: the split that they are in.
        attempt: which try of its messages it was.
        since: when the first one began, in seconds since 1970.
        group: their positions in the split, and how each failed.
    """

    split: Split
    attempt: int
    since: float
    group: list[tuple[int, Failure]]

    @property
    def failure(self) -> Failure:
        """How they failed, as the last of all their attempts."""
        return replace(self.group[0][1], attempt=self.attempts)

    @property
    def attempts(self) -> int:
        """How often they were tried, their batch having been run again perhaps."""
        return self.attempt + self.group[0][1].attempt - 1

    @property
    def positions(self) -> list[int]:
        """Where they are in the split."""
        return [position for position, _ in self.group]

    @property
    def expired(self) -> bool:
        """Whether their source no longer has them."""
        return self.group[0][1].reason is Reason.EXPIRED

    @property
    def source(self) -> _Source:
        """What has to be read for their payload."""
        apart = self.group[0][1].reason is Reason.LOST
        return _Source(json.dumps(self.split.data, sort_keys=True), apart)

    def place(self, position: int) -> int:
        """A position in the whole split, of which this one may be a part."""
        only = self.split.only
        return position if only is None else only[position]

    def kept(self, position: int) -> Any:
        """What the spout has kept of a message."""
        return None if self.split.kept is None else self.split.kept[position]


@final
class SplitLetters:
    """Writes the dead letters of one task of a partitioned spout.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        spout: it names its messages.
        writer: makes letters, and knows where they go.
    """

    def __init__(
        self, plan: Plan, component: str, spout: PartitionedSpout, writer: LetterWriter
    ) -> None:
        self._component = plan.spec(component).component
        self._stream = plan.stream(StreamKey(component, DEFAULT_STREAM))
        self._spout = spout
        self._writer = writer

    def write(
        self, given_up: Sequence[GivenUp]
    ) -> tuple[list[tuple[GivenUp, DeadLetter | None]], list[GivenUp]]:
        """Write the letters; return each with its first one, if letters are kept at all.

        And those that have none yet, since their source does not answer: to be tried once more
        rather than given up without their payload.
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

    def _read(
        self, given_up: Sequence[GivenUp]
    ) -> tuple[dict[tuple[_Source, int], Payload], set[_Source]]:
        """Read the payload of each message, by its source and its place in there.

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
