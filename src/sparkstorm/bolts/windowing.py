"""Kinds of windows: which moments belong together, and when a window is over. Pure arithmetic.

Times are whole microseconds since 1970, so sums are exact. Tuples are held in *slots*: all tuples
of a slot lie in the same windows. For tumbling and sliding windows a slot is the pane of a moment;
for sessions it is the moment itself.

The *watermark* is the moment before which no tuple is expected any more. A window is over when the
watermark has reached its end.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from sparkstorm.errors import TopologyError

__all__ = [
    "CountWindow",
    "Due",
    "SessionWindow",
    "SlidingWindow",
    "TimeWindow",
    "TumblingWindow",
    "Windowing",
    "is_seconds",
    "to_micros",
]

_MICROS = 1_000_000


class Due(NamedTuple):
    """A finished window: its slots, and the slots of it that no later window holds."""

    start: int
    end: int
    slots: list[int]
    done: list[int]


class TimeWindow(ABC):
    """A kind of window that ends at a moment."""

    @property
    @abstractmethod
    def hold_secs(self) -> float:
        """How long a tuple stays in windows, at least."""

    @property
    @abstractmethod
    def step_secs(self) -> float:
        """The time between the ends of two windows."""

    @abstractmethod
    def slot(self, at: int) -> int:
        """Return the slot of a moment."""

    @abstractmethod
    def first_end(self, slot: int, watermark: int) -> int:
        """Return the earliest end, after the watermark, of a window with this slot."""

    def next_end(self, slots: Sequence[int], watermark: int) -> int:
        """Return the earliest end, after the watermark, of a window with any of these slots."""
        return min(self.first_end(slot, watermark) for slot in slots)

    @abstractmethod
    def last_end(self, slot: int) -> int:
        """Return the end of the last window with this slot, if no more tuples come."""

    @abstractmethod
    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """Yield the windows with any of these slots that end in ``(before, watermark]``.

        Args:
            slots: the held slots of one key, in any order.
            before: the watermark of the last call.
            watermark: the new watermark.
        """


@dataclass(frozen=True, slots=True)
class SlidingWindow(TimeWindow):
    """A window of ``secs`` begins every ``every_secs``; the first begins at 1970-01-01.

    >>> SlidingWindow(60, every_secs=10)
    SlidingWindow(secs=60, every_secs=10)
    """

    secs: float
    every_secs: float

    def __post_init__(self) -> None:
        fit = is_seconds(self.secs) and is_seconds(self.every_secs)
        if not fit or to_micros(self.every_secs) <= 0 or self.every_secs > self.secs:
            raise TopologyError(
                f"{self!r}: secs and every_secs are numbers above 0, and every_secs is at most secs"
            )

    @property
    def hold_secs(self) -> float:
        """How long a tuple stays in windows."""
        return self.secs

    @property
    def step_secs(self) -> float:
        """The time between the ends of two windows."""
        return self.every_secs

    def slot(self, at: int) -> int:
        """Return the start of the pane: windows begin and end only between panes."""
        length, step = self._micros
        # The largest length that divides both, so fewest slots; no window edge falls inside a pane.
        pane = math.gcd(length, step)
        return at // pane * pane

    def first_end(self, slot: int, watermark: int) -> int:
        """Return the earliest end, after the watermark, of a window with this slot."""
        length, step = self._micros
        begun = max(slot, watermark) - length  # windows that begin later end after both
        return (begun // step + 1) * step + length

    def last_end(self, slot: int) -> int:
        """Return the end of the last window with this slot."""
        length, step = self._micros
        return slot // step * step + length

    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """Yield the finished windows, by their ends."""
        length, step = self._micros
        inside: dict[int, list[int]] = {}
        for slot in sorted(slots):
            last = min(self.last_end(slot), (watermark - length) // step * step + length)
            for end in range(self.first_end(slot, before), last + 1, step):
                inside.setdefault(end, []).append(slot)
        for end, found in sorted(inside.items()):
            done = [slot for slot in found if self.last_end(slot) == end]
            yield Due(end - length, end, found, done)

    @property
    def _micros(self) -> tuple[int, int]:
        return to_micros(self.secs), to_micros(self.every_secs)


@final
@dataclass(frozen=True, slots=True, init=False)
class TumblingWindow(SlidingWindow):
    """Windows of ``secs``, one after the other; the first begins at 1970-01-01.

    >>> TumblingWindow(60).every_secs
    60
    """

    def __init__(self, secs: float) -> None:
        SlidingWindow.__init__(self, secs, secs)


@final
@dataclass(frozen=True, slots=True)
class SessionWindow(TimeWindow):
    """A window that ends ``gap_secs`` after its last tuple.

    >>> SessionWindow(gap_secs=30)
    SessionWindow(gap_secs=30)
    """

    gap_secs: float

    def __post_init__(self) -> None:
        if not is_seconds(self.gap_secs) or to_micros(self.gap_secs) <= 0:
            raise TopologyError(f"{self!r}: gap_secs is a number above 0")

    @property
    def hold_secs(self) -> float:
        """How long a tuple stays in windows, at least."""
        return self.gap_secs

    @property
    def step_secs(self) -> float:
        """The gap that ends a session."""
        return self.gap_secs

    def slot(self, at: int) -> int:
        """Return the moment itself."""
        return at

    def first_end(self, slot: int, watermark: int) -> int:
        """Return the end of a session without later tuples."""
        return slot + to_micros(self.gap_secs)

    def next_end(self, slots: Sequence[int], watermark: int) -> int:
        """Return the earliest end of the sessions of these slots."""
        return min(self.last_end(session[-1]) for session in self._sessions(sorted(slots)))

    def last_end(self, slot: int) -> int:
        """Return the end of a session without later tuples."""
        return slot + to_micros(self.gap_secs)

    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """Yield the finished sessions, by their ends."""
        for session in self._sessions(sorted(slots)):
            end = self.last_end(session[-1])
            if end <= watermark:
                yield Due(session[0], end, session, session)

    def _sessions(self, slots: Sequence[int]) -> Iterator[list[int]]:
        session: list[int] = []
        for slot in slots:
            if session and slot >= self.last_end(session[-1]):
                yield session
                session = []
            session.append(slot)
        if session:
            yield session


@final
@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last ``size`` tuples, at every ``every`` new tuples (default: ``size``).

    >>> CountWindow(100, every=10)
    CountWindow(size=100, every=10)
    """

    size: int
    every: int | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or not 1 <= self.step <= self.size:
            raise TopologyError(
                f"{self!r}: size and every are at least 1, and every is at most size"
            )

    @property
    def step(self) -> int:
        """How many new tuples complete a window."""
        return self.size if self.every is None else self.every


Windowing: TypeAlias = TimeWindow | CountWindow
"""Any kind of window."""


def is_seconds(secs: object) -> bool:
    """Return whether a value is a finite number of 0 or more.

    >>> is_seconds(5), is_seconds("5s"), is_seconds(-1), is_seconds(float("inf"))
    (True, False, False, False)
    """
    return isinstance(secs, int | float) and not isinstance(secs, bool) and 0 <= secs < math.inf


def to_micros(secs: float) -> int:
    """Return seconds as whole microseconds."""
    return round(secs * _MICROS)
