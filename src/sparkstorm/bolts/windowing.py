"""Kinds of windows: which moments belong together, and when a window is over. Pure arithmetic.

Times are whole microseconds since 1970, so that adding them is exact. Tuples are held in *slots*:
a slot is a moment such that all tuples of it lie in the same windows. For tumbling and sliding
windows that is the pane that a moment falls into; for sessions the moment itself.

The *watermark* is the moment before which nothing is expected any more. A window is over when the
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
    "to_micros",
]

_MICROS = 1_000_000


class Due(NamedTuple):
    """A window that is over: the slots in it, and those of them that no later window holds."""

    start: int
    end: int
    slots: list[int]
    done: list[int]


class TimeWindow(ABC):
    """A kind of window that is over at some moment."""

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
        """The slot of a moment."""

    @abstractmethod
    def first_end(self, slot: int, watermark: int) -> int:
        """The earliest end, after the watermark, that a window with this slot may have."""

    def next_end(self, slots: Sequence[int], watermark: int) -> int:
        """The earliest end, after the watermark, of a window with any of these slots."""
        return min(self.first_end(slot, watermark) for slot in slots)

    @abstractmethod
    def last_end(self, slot: int) -> int:
        """The end of the last window with this slot, if nothing more comes."""

    @abstractmethod
    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """The windows that end in ``(before, watermark]``, with any of these slots in them.

        Args:
            slots: what is held under one key, in any order.
            before: the watermark up to which windows were emitted.
            watermark: the new one.
        """


@dataclass(frozen=True, slots=True)
class SlidingWindow(TimeWindow):
    """A window of ``secs`` begins every ``every_secs``; the first one at 1970-01-01.

    >>> SlidingWindow(60, every_secs=10)
    SlidingWindow(secs=60, every_secs=10)
    """

    secs: float
    every_secs: float

    def __post_init__(self) -> None:
        if to_micros(self.every_secs) <= 0 or self.every_secs > self.secs:
            raise TopologyError(
                f"{self!r}: secs and every_secs are above 0, and every_secs is at most secs"
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
        """The start of the pane: windows begin and end only between panes."""
        length, step = self._micros
        pane = math.gcd(length, step)
        return at // pane * pane

    def first_end(self, slot: int, watermark: int) -> int:
        """The earliest end, after the watermark, that a window with this slot may have."""
        length, step = self._micros
        begun = max(slot, watermark) - length  # a window that begins later ends after both
        return (begun // step + 1) * step + length

    def last_end(self, slot: int) -> int:
        """The end of the last window with this slot."""
        length, step = self._micros
        return slot // step * step + length

    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """The windows that are over, by their ends."""
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
    """One window of ``secs`` after the other; the first one begins at 1970-01-01.

    >>> TumblingWindow(60).every_secs
    60
    """

    def __init__(self, secs: float) -> None:
        SlidingWindow.__init__(self, secs, secs)


@final
@dataclass(frozen=True, slots=True)
class SessionWindow(TimeWindow):
    """A window goes on until nothing has come for ``gap_secs``; it ends so long after the last.

    >>> SessionWindow(gap_secs=30)
    SessionWindow(gap_secs=30)
    """

    gap_secs: float

    def __post_init__(self) -> None:
        if to_micros(self.gap_secs) <= 0:
            raise TopologyError(f"{self!r}: gap_secs is above 0")

    @property
    def hold_secs(self) -> float:
        """How long a tuple stays in windows, at least."""
        return self.gap_secs

    @property
    def step_secs(self) -> float:
        """The time that nothing may come for."""
        return self.gap_secs

    def slot(self, at: int) -> int:
        """The moment itself."""
        return at

    def first_end(self, slot: int, watermark: int) -> int:
        """The end of a session in which nothing follows."""
        return slot + to_micros(self.gap_secs)

    def next_end(self, slots: Sequence[int], watermark: int) -> int:
        """The earliest end of the sessions that these slots make."""
        return min(self.last_end(session[-1]) for session in self._sessions(sorted(slots)))

    def last_end(self, slot: int) -> int:
        """The end of a session in which nothing follows."""
        return slot + to_micros(self.gap_secs)

    def due(self, slots: Sequence[int], before: int, watermark: int) -> Iterator[Due]:
        """The sessions that are over, by their ends."""
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
    """The last ``size`` tuples, whenever ``every`` more have come (all of them new, unless set).

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
        """How many new tuples make a window."""
        return self.size if self.every is None else self.every


Windowing: TypeAlias = TimeWindow | CountWindow
"""Any kind of window."""


def to_micros(secs: float) -> int:
    """Seconds as whole microseconds."""
    return round(secs * _MICROS)
