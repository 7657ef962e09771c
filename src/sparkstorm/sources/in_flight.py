"""Messages in flight: the window of roots that a source has given out and not heard of again."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.acking.lineage import Indexes

__all__ = ["InFlight", "LoadVerdicts"]

Messages = TypeVar("Messages")
"""The facts that a source keeps of one load's messages."""


@dataclass(slots=True)
class _Load(Generic[Messages]):
    """One load: consecutive roots, of which some have ended."""

    count: int
    messages: Messages
    left: NDArray[np.bool_] | None = None
    """None while all messages are in flight, so that most loads cost nothing per message."""

    def end(self, places: Indexes) -> bool:
        """Note that these messages have ended; return whether all messages have."""
        if self.left is None:
            if len(places) == self.count:
                return True
            self.left = np.ones(self.count, np.bool_)
        self.left[places] = False
        return not self.left.any()


class LoadVerdicts(NamedTuple, Generic[Messages]):
    """The verdicts on messages of one load.

    Attributes:
        first: the load's first root.
        messages: the source's facts of the load.
        acked: the places of acked messages in the load.
        failed: the failed roots; a place is the root less ``first``.
    """

    first: int
    messages: Messages
    acked: Indexes
    failed: FailedRoots


@final
class InFlight(Generic[Messages]):
    """The loads of one source whose messages have not all ended, by their first roots.

    A source adds a load when a batch is planned, and goes through the verdicts when they come. A
    thread may add loads while another goes through verdicts.

    >>> window = InFlight[str]()
    >>> window.add(100, 3, "abc")
    >>> nothing = FailedRoots.none()
    >>> acked = np.array([100, 102, 999], np.uint64)
    >>> [one.acked.tolist() for one in window.verdicts(acked, nothing)]
    [[0, 2]]
    >>> len(window), window.left(100).tolist()
    (1, [1])
    """

    def __init__(self) -> None:
        self._loads: dict[int, _Load[Messages]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many messages are in flight."""
        return self._count

    def __contains__(self, first: int) -> bool:
        """Whether a load has messages in flight."""
        return first in self._loads

    def __getitem__(self, first: int) -> Messages:
        """The source's facts of a load."""
        return self._loads[first].messages

    def __iter__(self) -> Iterator[int]:
        """The first roots of all loads."""
        with self._lock:
            return iter(list(self._loads))

    def add(self, first: int, count: int, messages: Messages) -> None:
        """Add a load.

        Args:
            first: its first root; the others follow.
            count: how many messages.
            messages: the facts that the source keeps of them.
        """
        with self._lock:
            self._loads[first] = _Load(count, messages)
            self._count += count

    def remove(self, first: int) -> Messages:
        """Take a whole load out, without verdicts."""
        with self._lock:
            load = self._loads.pop(first)
            self._count -= load.count if load.left is None else int(load.left.sum())
            return load.messages

    def left(self, first: int) -> Indexes:
        """Return the places of a load's messages that have not ended."""
        load = self._loads[first]
        return np.arange(load.count) if load.left is None else np.flatnonzero(load.left)

    def loads(self) -> list[tuple[int, Messages, Indexes]]:
        """Return each load's first root, its facts, and the places of messages in flight.

        Any thread may ask.
        """
        with self._lock:
            loads = list(self._loads.items())
        return [
            (
                first,
                load.messages,
                np.arange(load.count) if load.left is None else np.flatnonzero(load.left),
            )
            for first, load in loads
        ]

    def find(self, roots: U64) -> Iterator[tuple[int, Messages, int]]:
        """Yield for each of some ascending roots in flight: the root, its load's facts, its place.

        Any thread may ask.
        """
        with self._lock:
            loads = dict(self._loads)
        firsts = np.array(sorted(loads), np.uint64)
        slots = np.searchsorted(firsts, roots, side="right") - 1
        for root, slot in zip(roots.tolist(), slots.tolist(), strict=True):
            if slot < 0:
                continue
            first = int(firsts[slot])
            load = loads[first]
            if root - first < load.count:
                yield root, load.messages, root - first

    def is_whole(self, first: int) -> bool:
        """Whether no message of a load has ended."""
        return self._loads[first].left is None

    def verdicts(self, acked: U64, failed: FailedRoots) -> Iterator[LoadVerdicts[Messages]]:
        """Yield the verdicts of each load; a load's messages end when the next load is asked for.

        Roots that are not in flight are passed over. One search finds all loads, so loads that wait
        for long cost next to nothing.

        Args:
            acked: acked roots, ascending.
            failed: failed roots.
        """
        with self._lock:
            counts = {first: load.count for first, load in self._loads.items()}
        for first, done, broken in _by_load(counts, acked, failed):
            load = self._loads[first]
            if load.left is not None:
                done = done[load.left[_places(done, first)]]
                broken = broken.select(load.left[_places(broken.roots, first)])
            yield LoadVerdicts(first, load.messages, _places(done, first), broken)
            self._end(first, load, _places(np.concatenate([done, broken.roots]), first))

    def _end(self, first: int, load: _Load[Messages], places: Indexes) -> None:
        with self._lock:
            self._count -= len(places)
            if load.end(places):
                del self._loads[first]


def _by_load(
    counts: dict[int, int], acked: U64, failed: FailedRoots
) -> Iterator[tuple[int, U64, FailedRoots]]:
    """Yield each load with an ended root: its first root, and its part of both."""
    firsts = np.array(sorted(counts), np.uint64)
    sizes = np.array([counts[first] for first in firsts.tolist()], np.uint64)
    bounds = np.stack((firsts, firsts + sizes))
    acked_from, acked_to = np.searchsorted(acked, bounds)
    failed_from, failed_to = np.searchsorted(failed.roots, bounds)
    ended = (acked_to > acked_from) | (failed_to > failed_from)
    edges = np.stack((acked_from, acked_to, failed_from, failed_to), axis=1)[ended].tolist()
    for first, (start, stop, failed_start, failed_stop) in zip(
        firsts[ended].tolist(), edges, strict=True
    ):
        yield first, acked[start:stop], failed.slice(failed_start, failed_stop)


def _places(roots: U64, first: int) -> Indexes:
    """Return the places of roots in the load that begins with ``first``."""
    return (roots - np.uint64(first)).astype(np.int64)
