"""The records of failed messages, kept for the time when the log no longer has them.

A record that fails is read once more, at once, on a thread of its own in the driver. When its
message is tried again, it travels in the split (``Split.kept``), and so through plans and
checkpoint. What could not be read in time, or finds no room, is read from the log as ever.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias, final

from sparkstorm.components.spout import Positions, Split
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.assignment import offsets_of
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.ranges import Ranges
from sparkstorm.kafka.records import Record, kept_size, to_kept
from sparkstorm.texts.logs import logger_of

__all__ = ["Keeper", "RawRead"]

RawRead: TypeAlias = Callable[[Split], Iterable[Record]]
"""Reads the records of a split whose ``only`` is set; those that are gone are left out."""

_SMALLEST = 100
"""Bytes that a record takes at least; more of them than there is room for are not even read."""

_logger = logger_of("sparkstorm.kafka")


class _Place(NamedTuple):
    """An offset in one life of a partition."""

    topic: str
    number: int
    epoch: int
    offset: int


@final
class Keeper:
    """Keeps records of failed messages. Its methods never block, and run on one thread at a time.

    Args:
        read: called on a thread of the keeper's own.
        most_bytes: how much is kept, what travels in splits included.
    """

    def __init__(self, read: RawRead, most_bytes: int) -> None:
        self._read = read
        self._most = most_bytes
        self._used = 0
        self._lock = threading.Lock()
        self._wanted: set[_Place] = set()
        self._here: dict[_Place, dict[str, Any]] = {}
        self._sizes: dict[_Place, int] = {}
        """Of all that is kept: here, or in a split."""
        self._queue: SimpleQueue[Split | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def want(self, split: Split, positions: Positions) -> None:
        """Messages have failed: read their records, unless they are kept already."""
        numbers = chain.from_iterable(range(low, high) for low, high in positions)
        failed = split.narrow(list(islice(numbers, self._most // _SMALLEST)))
        with self._lock:
            missing: list[int] = []
            room = (self._most - self._used) // _SMALLEST
            kept = failed.kept or (None,) * failed.count
            for number, (place, data) in enumerate(zip(_places(failed), kept, strict=True)):
                if data is not None:  # by an earlier driver, perhaps
                    self._note(place, kept_size(data))
                elif len(missing) < room and not self._has(place):
                    missing.append(number)
                    self._wanted.add(place)
        if missing:
            self._queue.put(failed.narrow(missing))
            self._start()

    def attach(self, split: Split) -> Split:
        """Hand over what is kept of a split that is to be tried again."""
        if split.only is None or not self._here:
            return split
        with self._lock:
            before = split.kept or (None,) * split.count
            kept = tuple(
                self._here.pop(place, None) if data is None else data
                for place, data in zip(_places(split), before, strict=True)
            )
        return replace(split, kept=kept) if any(kept) else split

    def forget(self, split: Split, positions: Positions) -> None:
        """These messages are done."""
        if not self._sizes and not self._wanted:
            return
        done, (topic, number, epoch) = Ranges(offsets_of(split, positions)), _life(split)
        with self._lock:
            for place in [*self._sizes, *self._wanted]:
                if place[:3] == (topic, number, epoch) and place.offset in done:
                    self._wanted.discard(place)
                    self._here.pop(place, None)
                    self._used -= self._sizes.pop(place, 0)

    def counts(self) -> Counter[Partition]:
        """How many records are kept, by partition."""
        with self._lock:
            return Counter(Partition(place.topic, place.number) for place in self._sizes)

    def close(self) -> None:
        """Read nothing more."""
        self._queue.put(None)

    def __repr__(self) -> str:
        return f"Keeper({len(self._sizes)} records, {self._used} of {self._most} bytes)"

    def _has(self, place: _Place) -> bool:
        return place in self._sizes or place in self._wanted

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="sparkstorm-kafka-keeper", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        try:
            while (split := self._queue.get()) is not None:
                with suppress(SpoutConnectionError):  # then it is read when it is tried again
                    self._keep(split)
                with self._lock:
                    self._wanted.difference_update(_places(split))
        except Exception:
            _logger.exception("records of failed messages are kept no longer")

    def _keep(self, split: Split) -> None:
        life = _life(split)
        for record in self._read(split):
            data = to_kept(record)
            place, size = _Place(*life, record.offset()), kept_size(data)
            with self._lock:
                if place in self._wanted and self._used + size <= self._most:
                    self._here[place] = data
                    self._note(place, size)

    def _note(self, place: _Place, size: int) -> None:
        self._used += size - self._sizes.get(place, 0)
        self._sizes[place] = size


def _life(split: Split) -> tuple[str, int, int]:
    return split.data["topic"], split.data["partition"], split.data["epoch"]


def _places(split: Split) -> Iterator[_Place]:
    """The offsets of a split whose ``only`` is set."""
    life, start = _life(split), split.data["start"]
    return (_Place(*life, start + position) for position in split.only or ())
