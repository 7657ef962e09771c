"""Watch: the last known answers of one driver, shared by all pages.

A hundred pages must cost the driver no more than one does. So each question is asked once a second
at most, and one question at a time: whoever comes meanwhile gets the last answer. A question that
takes the driver long is asked less often. The answers stay when the driver ends.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, final

from sparkstorm._version import __version__
from sparkstorm.clock import Clock
from sparkstorm.control.control import Control
from sparkstorm.control.views import (
    GroupView,
    LettersView,
    LetterView,
    LineView,
    MessageDetailView,
    MessagesView,
    ReplayView,
    SituationView,
    TopologyView,
    WindowName,
    WindowView,
)
from sparkstorm.errors import WorldError

__all__ = ["Watch"]

T = TypeVar("T")

FRESH_SECS = 1.0
"""An answer is good for so long."""

_REST = 20
"""A driver rests so many times longer than a question has kept it busy."""

_PATIENCE_SECS = 5.0
"""How long a first question waits for the questions of others."""

_RATE_SECS = 15.0
"""Rates are those of the last seconds, about so many."""

_MOST_ANSWERS = 256
_MOST_SAMPLES = 300


@final
@dataclass(slots=True)
class _Answer:
    value: Any
    until: float


@final
class Watch:
    """The questions of :class:`~sparkstorm.control.control.Control`, answered from memory.

    Every method may be called by any thread. A question without a known answer raises the
    :class:`~sparkstorm.errors.WorldError` of the control.

    Attributes:
        gone: whether the driver did not answer last time.
        listed: whether the registry still lists the topology.
        seen: when the driver answered last, in seconds since 1970; 0 if never.
    """

    def __init__(self, control: Control, clock: Clock) -> None:
        self.control = control
        self.gone = False
        self.listed = True
        self.seen = 0.0
        self._clock = clock
        self._asking = threading.Lock()
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._samples: deque[SituationView] = deque(maxlen=_MOST_SAMPLES)
        self._totals: deque[WindowView] = deque(maxlen=_MOST_SAMPLES)

    # --- look ---

    def topology(self) -> TopologyView:
        """Return the topology as it was submitted."""
        return self._ask("topology", lambda: self.control.topology())

    def situation(self) -> SituationView:
        """Return how it stands."""
        return self._ask("situation", self._sample)

    def samples(self) -> list[SituationView]:
        """Return the situations of the last minutes, the oldest first."""
        return list(self._samples)

    def window(self, window: WindowName) -> WindowView:
        """Return the metrics of a window."""
        question = self._total if window == ":all-time" else lambda: self.control.window(window)
        return self._ask(("window", window), question)

    def before(self) -> WindowView | None:
        """Return the counts of all time as they were some seconds ago; None if nobody asked."""
        return self._totals[0] if len(self._totals) > 1 else None

    def messages(
        self,
        *,
        state: str | None = None,
        spout: str | None = None,
        component: str | None = None,
        name: str | None = None,
        limit: int = 100,
    ) -> MessagesView:
        """Return unfinished messages, the oldest first."""
        return self._ask(
            ("messages", state, spout, component, name, limit),
            lambda: self.control.messages(
                state=state, spout=spout, component=component, name=name, limit=limit
            ),
        )

    def message(self, message: str) -> MessageDetailView | None:
        """Return a message by its id or name; None if nothing is known of it."""
        return self._ask(("message", message), lambda: self.control.message(message))

    def lines(
        self,
        *,
        component: str | None = None,
        message: str | None = None,
        level: str | None = None,
        limit: int = 200,
    ) -> list[LineView]:
        """Return the last lines of components, the oldest first."""
        return self._ask(
            ("lines", component, message, level, limit),
            lambda: self.control.lines(
                component=component, message=message, level=level, limit=limit
            ),
        )

    def letter_groups(self) -> list[GroupView]:
        """Return the dead letters by kind, the largest group first."""
        return self._ask("letter_groups", lambda: self.control.letter_groups())

    def letters(
        self, *, group: str | None = None, limit: int = 100, offset: int = 0
    ) -> LettersView:
        """Return dead letters, the newest first."""
        return self._ask(
            ("letters", group, limit, offset),
            lambda: self.control.letters(group=group, limit=limit, offset=offset),
        )

    def letter(self, letter: str) -> LetterView | None:
        """Return a dead letter; None if there is none of this id."""
        return self._ask(("letter", letter), lambda: self.control.letter(letter))

    def followed(self) -> list[str]:
        """Return the texts that are followed."""
        return self._ask("followed", lambda: self.control.followed())

    def replays(self) -> list[ReplayView]:
        """Return the requests of this run, the newest first."""
        return self._ask("replays", lambda: self.control.replays())

    # --- steer ---

    def order(self, order: Callable[[Control], T]) -> T:
        """Give the driver an order; all answers are asked for anew.

        Raises:
            ConfigError: the order names nothing.
            WorldError: the driver does not answer.
        """
        with self._turn():
            try:
                done = order(self.control)
            except WorldError:
                self.gone = True
                raise
            for answer in self._answers.values():
                answer.until = 0.0
            return done

    def leave(self) -> None:
        """Take note that the topology is no longer listed: it has ended."""
        self.gone = True
        self.listed = False

    def join(self, control: Control) -> None:
        """Take note that the topology is listed; a new client may reach a driver that was gone."""
        self.listed = True
        if self.gone:
            self.control = control

    # --- how ---

    def _sample(self) -> SituationView:
        situation = self.control.situation()
        self._samples.append(situation)
        return situation

    def _total(self) -> WindowView:
        total = self.control.window(":all-time")
        self._totals.append(total)
        while len(self._totals) > 2 and total.secs - self._totals[1].secs >= _RATE_SECS:
            self._totals.popleft()
        return total

    def _ask(self, key: Hashable, question: Callable[[], T]) -> T:
        known = self._known(key)
        if known is not None and (self._is_fresh(known) or self._asking.locked()):
            return known.value  # type: ignore[no-any-return]
        with self._turn():
            known = self._known(key)  # another thread may just have asked the same
            if known is not None and self._is_fresh(known):
                return known.value  # type: ignore[no-any-return]
            try:
                return self._learn(key, question)
            except WorldError:
                self.gone = True
                if known is None:
                    raise
                known.until = self._clock.monotonic() + FRESH_SECS
                return known.value  # type: ignore[no-any-return]

    def _learn(self, key: Hashable, question: Callable[[], T]) -> T:
        began = self._clock.monotonic()
        try:
            value = question()
        except ValueError as error:
            raise WorldError(
                f"the driver's answer cannot be read: is it of another version of sparkstorm? "
                f"This page is of {__version__}."
            ) from error
        ended = self._clock.monotonic()
        self.gone = False
        self.seen = self._clock.wall()
        self._answers[key] = _Answer(value, ended + max(FRESH_SECS, _REST * (ended - began)))
        self._answers.move_to_end(key)
        while len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)
        return value

    def _known(self, key: Hashable) -> _Answer | None:
        return self._answers.get(key)

    def _is_fresh(self, answer: _Answer) -> bool:
        return self._clock.monotonic() < answer.until

    def _turn(self) -> "_Turn":
        return _Turn(self._asking)


@final
class _Turn:
    """One thread's turn at the driver; a driver that hangs must not make all threads hang."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_PATIENCE_SECS):
            raise WorldError("the driver has not answered for seconds; is its process stopped?")

    def __exit__(self, *error: object) -> None:
        self._lock.release()
