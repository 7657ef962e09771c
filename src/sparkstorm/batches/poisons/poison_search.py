"""The search for poisons: messages that kill or hang the job of their batch.

A failed job says little of the reason. So the search runs *probes*: jobs with a part of the batch
that count for nothing and may be repeated. Binary search finds the first message that makes a probe
fail; all messages before have passed and need no second look. Then the rest runs as the batch, and
only if the batch fails again, the search goes on behind the found message. For p poisons among n
messages the search takes about p · log2 n jobs, all inside one batch.

The search condemns a message after two failed *trials*: the message runs alone, with Spark's own
retries and the whole time-out of a batch. Between the trials a probe without any message must pass.
And no poison is told of before the batch has passed without the poison. So a worker killed by
chance, a slow message, or a cluster that is away condemns nobody, and costs a few more jobs. One
trial would not be enough: the last suspect is often found by elimination, so a batch and a single
trial that both failed by accident would condemn an innocent message.

::

    WHOLE ──failed──► CONTROL ──passed──► HALVE ⟲ ──one left──► TRIAL ──failed──► CONFIRM
                         │                  ▲                     │ passed           │ passed
                         │ failed           ╰──failed── REST ◄────┴─────── AGAIN ◄───╯
                         │                               ▲ │      passed     │ failed
                         │                               ╰─┼──condemned──────┤
                         ▼         nothing left to suspect │                 │ too many
                     HOPELESS ◄──nothing left── PART ⟲ ◄───┴─────────────────╯

WHOLE, REST and PART run the batch itself: if one passes, the batch is done. A failed CONFIRM leads
to HOPELESS, and so does AGAIN when the limit of poisons is reached and no message has passed.
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
    """The next job of a search.

    Attributes:
        purpose: whether the job is the batch, a probe or a trial.
        messages: how many messages of the batch run.
        excluded: the roots of all other messages.
    """

    purpose: Purpose
    messages: int
    excluded: tuple[RootRange, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Poison:
    """A message that failed its trials.

    Attributes:
        root: the message's root.
        hung: whether the message ran out of time; else its process ended.
    """

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
    """Chooses the jobs after a batch's job has failed, one by one. Pure.

    Run :attr:`action`, then call :meth:`passed` or :meth:`failed`, until an action that is the
    batch itself has passed, or the search is :attr:`hopeless`. Left-out messages that are no
    poisons come back in later batches, and are not charged with a try.

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
        hung: whether the first run ran out of time. A hung batch is not repeated whole: the end of
            a process is often an accident, a hang seldom is, and costs as long again.
        max_poisons: how many poisons to look for; messages behind the last poison are left out.
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
        """The job to run next."""
        start, stop = self._span()
        gone = [position for position, _ in self._found]
        excluded = self._roots(_complement(start, stop, gone, self._count))
        left_out = sum(span.count for span in excluded)
        purpose = _PURPOSES.get(self._step, Purpose.PROBE)
        return Action(purpose=purpose, messages=self._count - left_out, excluded=excluded)

    @property
    def poisons(self) -> tuple[Poison, ...]:
        """The messages condemned so far."""
        return tuple(poison for _, poison in self._found)

    @property
    def suspects(self) -> int:
        """How many messages are suspected."""
        return self._bad - self._good

    @property
    def hopeless(self) -> bool:
        """Whether no message is at fault: there is nothing more to run."""
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
        """Halve the suspects; without suspects messages fail only together, so run fewer."""
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
        """Return the positions of the messages to run, poisons among them."""
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
        """Return the roots at these positions."""
        found, base = [], 0
        for span in self._ranges:
            for start, stop in spans:
                first, end = max(start - base, 0), min(stop - base, span.count)
                if first < end:
                    found.append(RootRange(span.first + first, end - first))
            base += span.count
        return tuple(found)


def _complement(start: int, stop: int, gone: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return all positions below ``count`` outside of start to stop, and the ``gone`` positions."""
    inside = [(position, position + 1) for position in gone if start <= position < stop]
    outside = [(0, start), *inside, (stop, count)]
    return [span for span in outside if span[0] < span[1]]


@final
class TimeLimits:
    """The time limits of a search's jobs: a hang costs seconds, not minutes.

    A batch of n messages has its whole time-out, so m messages have m/n of the time-out, and all
    probes of one search together take hardly longer than one batch. Where batches are known to be
    faster, the limit is four times the longest batch or probe that passed. Added to either: twice
    the quickest probe, for the cost of any job, and the seconds that Spark takes to get rid of a
    hung worker. A limit that led to an innocent message was too short: the next limits are four
    times as long. A trial has the whole time-out, and so has a control, since the control shows
    first how long a job takes.
    """

    _KILL_SECS = 3.0
    _MARGIN = 4.0

    def __init__(self, timeout_secs: float, messages: int, good_secs: float) -> None:
        self._timeout_secs = timeout_secs
        self._messages = max(1, messages)
        self._longest = good_secs
        self._quickest: float | None = None

    def of(self, action: Action, mistakes: int = 0) -> float:
        """Return the limit of an action, in seconds."""
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
