"""Finding the messages that kill or hang a batch's job: what to run next, and what that showed.

A job that fails says little of why. So messages are tried apart from the others, in *probes*:
actions of the same batch that count for nothing and may therefore be repeated. The first message
that makes a probe fail is found by binary search; what lies before it has passed and needs no
second look. Then all the rest is run as the batch, and only if that fails, too, is the search
taken up behind the message found. For p such messages among n that is about p · log2 n actions,
all inside one batch.

Before a message is condemned it must fail two *trials*, alone, with Spark's own retries and all the
time that a batch may take; between them a probe without any message must pass. And no word counts
before the batch has passed without it. So neither a worker that was killed by chance, nor a slow
message, nor a cluster that is away condemns anything: they cost a few actions more. For the last
suspect is often found by elimination, since all others pass: a batch that failed by accident, and
a single trial that does, would otherwise condemn any message.

::

    WHOLE ──failed──► CONTROL ──passed──► HALVE ⟲ ──one left──► TRIAL ──failed──► CONFIRM
                         │                  ▲                     │ passed           │ passed
                         │ failed           ╰──failed── REST ◄────┴─────── AGAIN ◄───╯
                         │                               ▲ │      passed     │ failed
                         │                               ╰─┼──condemned──────┤
                         ▼         nothing left to suspect │                 │ too many
                     HOPELESS ◄──nothing left── PART ⟲ ◄───┴─────────────────╯

WHOLE, REST and PART run the batch itself: if one passes, the batch is done. If CONFIRM fails, or
AGAIN has condemned as many as are looked for and none has passed, that is HOPELESS, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import Purpose

__all__ = ["MAX_POISONS", "Action", "Poison", "PoisonSearch", "TimeLimits"]

MAX_POISONS = 16
"""How many poisons one search looks for."""

_MAX_MISTAKES = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What to run next: with ``messages`` of the batch, ``excluded`` are the others."""

    purpose: Purpose
    messages: int
    excluded: tuple[RootRange, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Poison:
    """A message that failed its trials; ``hung``: it ran out of time, else its process ended."""

    root: int
    hung: bool


class _Step(Enum):
    WHOLE = auto()
    CONTROL = auto()
    HALVE = auto()
    TRIAL = auto()
    CONFIRM = auto()
    AGAIN = auto()
    REST = auto()
    PART = auto()
    HOPELESS = auto()


_PURPOSES = {
    _Step.WHOLE: Purpose.BATCH,
    _Step.REST: Purpose.BATCH,
    _Step.PART: Purpose.BATCH,
    _Step.TRIAL: Purpose.TRIAL,
    _Step.AGAIN: Purpose.TRIAL,
}


@final
class PoisonSearch:
    """What to run after a batch's job has failed, action by action. Pure.

    Run :attr:`action`, then call :meth:`passed` or :meth:`failed`, until an action that is the
    batch itself has passed, or the search is :attr:`hopeless`. What was left out of the one that
    passed, and is no poison, comes back in later batches, and is not charged with a try.

    >>> search = PoisonSearch([RootRange(0, 4)])  # message 2 is a poison
    >>> search.failed(); search.action.messages  # it was no accident: try none
    0
    >>> search.passed(); search.action.messages  # the world is well: try messages 0 and 1
    2
    >>> search.passed(); search.action.excluded  # they pass: try message 2
    (RootRange(first=0, count=2), RootRange(first=3, count=1))
    >>> search.failed(); search.action.purpose.value
    'trial'
    >>> search.failed(); search.passed(); search.action.purpose.value  # once more, to be sure
    'trial'
    >>> search.failed(); search.poisons
    (Poison(root=2, hung=False),)
    >>> search.action
    Action(purpose=<Purpose.BATCH: 'batch'>, messages=3, excluded=(RootRange(first=2, count=1),))

    Args:
        ranges: the roots of the batch.
        hung: the first attempt ran out of time. It is then not repeated whole: what ends a
            process is often an accident, what takes so long seldom is, and it costs as long again.
        max_poisons: how many to look for; what lies behind the last one is left out.
    """

    def __init__(
        self,
        ranges: Sequence[RootRange],
        *,
        hung: bool = False,
        max_poisons: int = MAX_POISONS,
    ) -> None:
        self._ranges = tuple(sorted(ranges))
        self._count = sum(span.count for span in self._ranges)
        self._good = 0  # what lies before has passed, or was found
        self._bad = self._count  # from _good up to here, something fails
        self._kept = self._count  # how far PART goes
        self._found: list[tuple[int, Poison]] = []
        self._max_poisons = max_poisons
        self._step = _Step.CONTROL if hung else _Step.WHOLE
        self.mistakes = 0
        """How often the search led to a message that passed a trial."""

    @property
    def action(self) -> Action:
        """What to run next."""
        start, stop = self._span()
        gone = [position for position, _ in self._found]
        excluded = self._roots(_complement(start, stop, gone, self._count))
        left_out = sum(span.count for span in excluded)
        purpose = _PURPOSES.get(self._step, Purpose.PROBE)
        return Action(purpose=purpose, messages=self._count - left_out, excluded=excluded)

    @property
    def poisons(self) -> tuple[Poison, ...]:
        """What was condemned so far."""
        return tuple(poison for _, poison in self._found)

    @property
    def suspects(self) -> int:
        """Among how many messages the next poison is looked for."""
        return self._bad - self._good

    @property
    def hopeless(self) -> bool:
        """Whether it is not the messages' fault: nothing more is to be run."""
        return self._step is _Step.HOPELESS

    def passed(self) -> None:
        """Note that the action succeeded, and was not the batch itself."""
        match self._step:
            case _Step.CONTROL:
                self._look_on()
            case _Step.HALVE:
                self._good = self._middle
                self._look_on()
            case _Step.TRIAL | _Step.AGAIN:
                self._good += 1
                self.mistakes += 1
                self._step = _Step.REST
            case _Step.CONFIRM:
                self._step = _Step.AGAIN

    def failed(self, *, hung: bool = False) -> None:
        """Note that the action failed: by the time limit if ``hung``."""
        match self._step:
            case _Step.WHOLE:
                self._step = _Step.CONTROL
            case _Step.HALVE:
                self._bad = self._middle
                self._look_on()
            case _Step.TRIAL:
                self._step = _Step.CONFIRM
            case _Step.AGAIN:
                self._condemn(hung)
            case _Step.REST:
                self._bad = self._count
                self._look_on()
            case _Step.PART if self._kept:
                self._kept //= 2
            case _:
                self._step = _Step.HOPELESS

    def _look_on(self) -> None:
        """Halve what is suspected; if that is nothing, messages fail only together: run fewer."""
        if not self._count:
            self._step = _Step.HOPELESS
        elif not self.suspects or self.mistakes > _MAX_MISTAKES:
            self._run_part(self._count // 2)
        else:
            self._step = _Step.TRIAL if self.suspects == 1 else _Step.HALVE

    def _condemn(self, hung: bool) -> None:
        [span] = self._roots([(self._good, self._good + 1)])
        self._found.append((self._good, Poison(span.first, hung)))
        self._good += 1
        self._bad = self._count
        if len(self._found) < self._max_poisons:
            self._step = _Step.REST
        elif self._good == len(self._found) and self.suspects:
            self._step = _Step.HOPELESS  # none has passed yet: it is the bolt, not the messages
        else:
            self._run_part(self._good)

    def _run_part(self, kept: int) -> None:
        self._kept = kept
        self._step = _Step.PART

    @property
    def _middle(self) -> int:
        return self._good + self.suspects // 2

    def _span(self) -> tuple[int, int]:
        """The positions of the messages to run, poisons among them."""
        match self._step:
            case _Step.CONTROL | _Step.CONFIRM | _Step.HOPELESS:
                return 0, 0
            case _Step.HALVE:
                return self._good, self._middle
            case _Step.TRIAL | _Step.AGAIN:
                return self._good, self._good + 1
            case _Step.PART:
                return 0, self._kept
            case _:
                return 0, self._count

    def _roots(self, spans: Sequence[tuple[int, int]]) -> tuple[RootRange, ...]:
        """The roots at these positions."""
        found, base = [], 0
        for span in self._ranges:
            for start, stop in spans:
                first, end = max(start - base, 0), min(stop - base, span.count)
                if first < end:
                    found.append(RootRange(span.first + first, end - first))
            base += span.count
        return tuple(found)


def _complement(start: int, stop: int, gone: Sequence[int], count: int) -> list[tuple[int, int]]:
    """All positions below ``count`` but those from start to stop; ``gone`` ones in any case."""
    inside = [(position, position + 1) for position in gone if start <= position < stop]
    outside = [(0, start), *inside, (stop, count)]
    return [span for span in outside if span[0] < span[1]]


@final
class TimeLimits:
    """How long the actions of a search may take, so that a hung one costs seconds, not minutes.

    A batch of n messages may take its whole time-out; so m of them may take m/n of it, and all
    probes of one search together hardly more than one batch. What is known to be faster gets less:
    four times the longest batch or probe that passed. To either comes what any action costs (the
    quickest that passed, twice), and the seconds that Spark takes to get rid of a hung worker. A
    limit that led to an innocent message was too short: the next ones are four times as long. A
    trial has the whole time-out, and so has a control, which shows first what an action costs.
    """

    _KILL_SECS = 3.0
    _MARGIN = 4.0

    def __init__(self, timeout_secs: float, messages: int, good_secs: float) -> None:
        self._timeout_secs = timeout_secs
        self._messages = max(1, messages)
        self._longest = good_secs
        self._quickest: float | None = None

    def of(self, action: Action, mistakes: int = 0) -> float:
        """The limit of an action, in seconds."""
        if action.purpose is Purpose.TRIAL or not action.messages:
            return self._timeout_secs
        share = self._timeout_secs * action.messages / self._messages
        known = min(share, self._MARGIN * self._longest) if self._longest else share
        limit = known + 2 * (self._quickest or 0.0) + self._KILL_SECS
        return min(self._timeout_secs, limit * self._MARGIN**mistakes)

    def passed(self, action: Action, secs: float) -> None:
        """Learn from an action that passed."""
        if action.messages:
            self._longest = max(self._longest, secs)
        self._quickest = secs if self._quickest is None else min(secs, self._quickest)
