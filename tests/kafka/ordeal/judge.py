"""The judge of an ordeal: finds what became of each record, and which promises were broken."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tests.kafka.ordeal.evidence import Book, Record, Spot

__all__ = ["Judgement", "hopeless", "judge"]

_AROUND_SECS = 20.0
"""Troubles and warnings so near to a missing record are shown beside it."""

_MOST_SHOWN = 20
"""Ranges of offsets in a story."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fates of all records, by what became of them, and the broken promises."""

    fates: Counter[str]
    faults: list[str]


def hopeless(numbers: Iterable[int]) -> set[int]:
    """The numbers that fail for ever."""
    return {number for number in numbers if number % 1000 == 7}


def judge(book: Book) -> Judgement:
    """Return what became of each record, and which promises were broken.

    A record is processed, or is a dead letter, or lies in a range that a warning names as gone.
    Only of a topic that was deleted may a record be missing beyond the last end that a driver can
    have known. A warning then names that topic and that end. A record that the log has kept is
    processed, or is a dead letter that holds it.
    """
    return _Case(book).judgement()


class _Case:
    """All that the judge asks of the evidence, found once."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._arrived = set(book.arrived)
        done = self._arrived | book.dead
        self._done = {record.spot for number, record in book.given.items() if number in done}
        self._missing = {n: record for n, record in book.given.items() if n not in done}
        self._lost = book.lost()
        self._met = {spot.log for spot in self._done | book.expired}
        """The partitions of topics of which a driver has planned anything."""

    def judgement(self) -> Judgement:
        fates = {number: self._fate(record.spot) for number, record in self._missing.items()}
        silent = [self._missing[n] for n, fate in fates.items() if fate == "lost in silence"]
        there = [record for record in self._missing.values() if self._was_there(record.spot)]
        counted = [self._missing[n].spot for n, fate in fates.items() if fate == "counted"]
        faults = [
            *self._book.faults,
            *(self._story("lost in silence", *group) for group in _by_partition(silent)),
            *(self._story("in the log all the time", *group) for group in _by_partition(there)),
            *self._miscounted(counted),
            *(f"{n} fails for ever and was processed" for n in sorted(hopeless(self._arrived))),
        ]
        done = {"processed": len(self._arrived), "dead letters": len(self._book.dead)}
        return Judgement(Counter({**done, **Counter(fates.values())}), faults)

    def _fate(self, spot: Spot) -> str:
        """What became of a record that was neither processed nor is in a dead letter."""
        if spot in self._book.expired:
            return "expired dead letters"
        if any(gone.holds(spot) for gone in self._book.gone):
            return "counted"
        end = self._book.ends.get(spot.log)
        if end is not None and spot.offset >= end:
            return "behind the last known end"
        if spot.topic_id != self._book.lives[-1] and spot.log not in self._met:
            return "of a topic that no driver has met"
        return "lost in silence"

    def _was_there(self, spot: Spot) -> bool:
        """Whether no trouble has taken a record: then it must be processed, whatever was said."""
        return spot.offset >= self._lost.get(spot.log, 0)

    def _miscounted(self, counted: Iterable[Spot]) -> Iterator[str]:
        """Yield partitions whose count of expired offsets is less than what is missing there."""
        for partition, count in Counter(spot.partition for spot in counted).items():
            told = self._book.counted.get(partition, 0)
            if told < count:
                yield f"partition {partition}: {count} are gone, and expired is {told}"

    def _story(self, fate: str, life: str, partition: int, lost: list[Record]) -> str:
        """Tell of missing records: which, when they were written, and what happened around then."""
        begin, end = lost[0].at - _AROUND_SECS, lost[-1].at + _AROUND_SECS
        ranges = _shortened(record.spot.offset for record in lost)
        done = _shortened(sorted(one.offset for one in self._done if one.log == (life, partition)))
        told = [
            f"{len(lost)} missing records were {fate}: topic {life} (number "
            f"{self._book.lives.index(life)} of {len(self._book.lives)}), partition {partition}, "
            f"offsets {ranges}, written {lost[0].at:.1f} to {lost[-1].at:.1f}",
            f"offsets of this partition that were done: {done}",
            *(str(one) for one in self._book.troubles if _meets(one, begin, end)),
            *(
                line
                for line in self._book.lines
                if f"/{partition}" in line and begin <= float(line.split()[0]) <= end
            ),
        ]
        return "\n    ".join(told)


def _by_partition(records: Iterable[Record]) -> list[tuple[str, int, list[Record]]]:
    """Group records by topic and partition; each group ascends."""
    groups = groupby(sorted(records), key=lambda record: record.spot.log)
    return [(*place, [*group]) for place, group in groups]


def _shortened(offsets: Iterable[int]) -> str:
    """Return ascending offsets as text: the first ranges of them.

    >>> _shortened([0, 1, 2, 7, 9, 10])
    '0-2, 7-7, 9-10'
    """
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and offset == ranges[-1][1] + 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    more = f" and {len(ranges) - _MOST_SHOWN} ranges more" if len(ranges) > _MOST_SHOWN else ""
    return ", ".join(f"{low}-{high}" for low, high in ranges[:_MOST_SHOWN]) + more or "none"


def _meets(trouble: dict[str, Any], begin: float, end: float) -> bool:
    """Whether a trouble happened within a time."""
    return bool(trouble["begin"] <= end and trouble["end"] >= begin)
