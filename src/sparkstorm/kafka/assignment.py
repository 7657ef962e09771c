"""The partitions of one spout task, and the progress of each. Without any I/O.

News of the cluster come in (:meth:`Assignment.begin`, ``note_ends``, ``jump``, ``note_there``),
splits go out (:meth:`Assignment.plan`), verdicts come back, and the caller asks for the progress to
commit.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, final

from sparkstorm.components.spout import Positions, Split
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.beginnings import Beginning, Known
from sparkstorm.kafka.offsets.place import Place, end_of, statistics_of
from sparkstorm.kafka.offsets.progress import PartitionProgress
from sparkstorm.kafka.offsets.ranges import Range
from sparkstorm.kafka.offsets.stored import CommittedOffset, Stored
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.texts.logs import logger_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Assignment", "Limits", "merge_splits", "offsets_of"]

_FAIR_SHARE = 1000
"""Each partition may plan at least so many offsets in a turn: smaller splits cost too much."""

_MOST_PICKED = 10_000
"""A split of short ranges holds about so many offsets, since the split lists each offset."""

_logger = logger_of("sparkstorm.kafka")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of one partition may be under way.

    Attributes:
        uncommitted: offsets between the commit point and the last planned offset.
        rate: messages a second.
    """

    uncommitted: int | None = None
    rate: float | None = None


@final
class Assignment:
    """The partitions of one task.

    Args:
        limits: for each partition.
        bounded: whether to plan only up to the first known ends of the partitions.
    """

    def __init__(self, limits: Limits, *, bounded: bool = False) -> None:
        self._limits = limits
        self._bounded = bounded
        self._places: dict[Partition, Place] = {}
        self._turn = 0
        self._halted: frozenset[str] | None = frozenset()
        """The partitions that the user has paused, by name; None for all."""

    @property
    def positions(self) -> dict[Partition, int]:
        """The planned end of each partition."""
        return {p: place.progress.emitted_to for p, place in self._places.items()}

    @property
    def in_flight(self) -> int:
        """How many offsets are in batches or open after a batch, without failed offsets."""
        return sum(p.progress.pending - p.progress.failed for p in self._places.values())

    @property
    def known(self) -> dict[Partition, Known]:
        """Each partition, as in the checkpoint."""
        return {
            p: Known(
                place.topic_id, place.progress.emitted_to, place.progress.commit_to, place.held
            )
            for p, place in self._places.items()
        }

    @property
    def exhausted(self) -> bool:
        """Whether a bounded assignment is planned to the end."""
        return self._bounded and all(
            place.until is not None and place.progress.emitted_to >= place.until
            for place in self._places.values()
            if place.there
        )

    def begin(self, partition: Partition, beginning: Beginning) -> None:
        """Take up a partition, or begin anew, for example for a new topic of the name."""
        before = self._places.get(partition)
        epoch = 0 if before is None else before.progress.epoch + 1
        if beginning.regrown and before is not None:
            progress = before.progress.until(beginning.offset, epoch)
        else:
            progress = PartitionProgress(beginning.offset, beginning.done, epoch=epoch)
        progress.expired = beginning.skipped
        place = Place(progress, beginning.topic_id, end=beginning.offset, held=beginning.held)
        place.cuts = int(beginning.cut)
        lost = None if before is None else place.succeed(before, cut=beginning.cut)
        self._places[partition] = place
        if beginning.why:
            _logger.warning("%s: %s%s", partition, beginning.why, end_of(lost, place.topic_id))

    def note_ends(self, ends: Mapping[Partition, int], now: float = 0.0) -> None:
        """Note the readable ends of partitions."""
        for partition, end in ends.items():
            place = self._places.get(partition)
            if place is None:
                continue
            if end < place.progress.emitted_to:
                continue  # where to go on follows
            if end < place.end:
                self._note_cut(partition, place, end)
            place.end = end
            place.arrivals.note(end, now)
            if self._bounded and place.until is None:
                place.until = end

    def note_held(self, held: Mapping[Partition, CommittedOffset]) -> None:
        """Note the stored progress."""
        for partition, one in held.items():
            if partition in self._places:
                self._places[partition].held = one

    def jump(self, partition: Partition, low: int, to: int) -> None:
        """Go on at ``to``, since the log begins at ``low``, unless earlier offsets were planned."""
        place = self._places.get(partition)
        if place is not None and to > place.progress.emitted_to:
            was = place.progress.emitted_to
            lost = place.progress.jump(to)
            place.dirty = True
            _logger.warning(
                "%s: the log has no offset %s, it begins at %s: going on at %s; %s offsets are "
                "skipped",
                *(partition, was, low, to, lost),
            )

    def note_there(self, there: Collection[Partition]) -> None:
        """Note the existing partitions; offsets under way of others may still come back."""
        for partition, place in self._places.items():
            if place.there and partition not in there:
                _logger.warning(
                    "%s is gone from the cluster: nothing is read from it. It was planned up to "
                    "the offset %s, and its last known end is %s (topic id %s)",
                    *(partition, place.progress.emitted_to, place.end, place.topic_id),
                )
            place.there = partition in there

    def halt(self, names: Collection[str]) -> None:
        """Pause these partitions; all, if no name is given."""
        if not names:
            self._halted = None
        elif self._halted is not None:
            self._halted |= frozenset(names)

    def resume(self, names: Collection[str]) -> None:
        """Resume these partitions; all, if no name is given."""
        halted = self._halted
        if halted is None and names:
            halted = frozenset(str(partition) for partition in self._places)
        self._halted = (halted or frozenset()) - frozenset(names) if names else frozenset()

    def plan(self, limit: int, now: float) -> list[Split]:
        """Return the next splits, together at most ``limit`` offsets, all partitions in turn."""
        ready = [p for p, place in self._places.items() if self._is_ready(p, place)]
        splits: list[Split] = []
        self._turn += 1
        share = max(-(-limit // max(len(ready), 1)), _FAIR_SHARE)
        for number in range(len(ready)):
            partition = ready[(self._turn + number) % len(ready)]
            wanted = min(share, limit)
            planned = self._plan(partition, self._places[partition], wanted, now)
            splits += planned
            limit -= sum(split.count for split in planned)
            if limit <= 0:
                break
        return splits

    def preview(self) -> list[Split]:
        """Return the first split of the next plan, without planning; [] without a split.

        The split's first record may be missing, like any record.
        """
        for partition, place in self._places.items():
            if place.there and place.progress.emitted_to < place.stop:
                start = place.progress.emitted_to
                count = min(place.stop - start, _FAIR_SHARE)
                return [_split([(start, start + count)], _data(partition, place))]
        return []

    def finish(self, split: Split, positions: Positions, *, given_up: bool = False) -> None:
        """Note acked and given-up messages."""
        place = self._place_of(split)
        if place is not None:
            ranges = offsets_of(split, positions)
            place.progress.finish(ranges)
            place.dirty = True
            if given_up:
                place.progress.dead_letters += sum(stop - start for start, stop in ranges)

    def fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        """Note messages to try again. Messages not read, or lost, stay pending."""
        place = self._place_of(split)
        if place is not None and failure.counted and failure.reason is not Reason.LOST:
            place.progress.fail(
                offsets_of(split, positions), failure.component, failure.message, seen=True
            )

    def commits(self, *, everything: bool = False) -> dict[Partition, Stored]:
        """Return progress to store: changes since the last call, or everything."""
        changed = {
            partition: Stored(
                place.progress.commit_to,
                list(place.progress.done_beyond),
                topic_id=place.topic_id,
            )
            for partition, place in self._places.items()
            if (place.dirty or everything) and place.there
        }
        for partition in changed:
            self._places[partition].dirty = False
        return changed

    def statistics(self, now: float = 0.0) -> list[PartitionStatistics]:
        """The statistics of each partition."""
        return [
            replace(statistics_of(partition, place, now), halted=self._is_halted(partition))
            for partition, place in sorted(self._places.items())
            if place.there
        ]

    def snapshot(self) -> dict[str, Any]:
        """Return the assignment as JSON's types, for :meth:`restore`."""
        found: dict[str, Any] = {}
        for partition, place in self._places.items():
            numbers = found.setdefault(partition.topic, {})
            numbers[str(partition.number)] = place.snapshot()
        return found

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take up the progress of an earlier run."""
        for topic, numbers in snapshot.items():
            for number, data in numbers.items():
                self._places[Partition(topic, int(number))] = Place.restore(data)

    def __repr__(self) -> str:
        return f"Assignment({len(self._places)} partitions)"

    def _note_cut(self, partition: Partition, place: Place, end: int) -> None:
        """Go on after a log was cut, behind the planned end."""
        gone = place.end - end
        place.progress.expired += gone
        place.cuts += 1
        if place.until is not None:
            place.until = min(place.until, end)
        _logger.warning(
            "%s: the log has become shorter, it ended at %s and ends at %s now: %s offsets were "
            "gone before they were read",
            *(partition, place.end, end, gone),
        )

    def _is_halted(self, partition: Partition) -> bool:
        return self._halted is None or str(partition) in self._halted

    def _is_ready(self, partition: Partition, place: Place) -> bool:
        if not place.there or self._is_halted(partition) or place.progress.emitted_to >= place.stop:
            return False
        most = self._limits.uncommitted
        full = most is not None and place.progress.emitted_to - place.progress.commit_to >= most
        if full and not place.paused:
            _logger.warning(
                "%s is paused: %s offsets beyond its commit point %s, as many as "
                "max_uncommitted allows; offset %s holds it back",
                *(partition, most, place.progress.commit_to, place.progress.oldest),
            )
        place.paused = full
        return not full

    def _plan(self, partition: Partition, place: Place, limit: int, now: float) -> list[Split]:
        limit = min(limit, place.allowed(self._limits.rate, now))
        if limit <= 0:
            return []
        progress = place.progress
        ranges = progress.emit(limit, place.stop, self._limits.uncommitted)
        place.tokens -= sum(stop - start for start, stop in ranges)
        data = _data(partition, place)
        return [_split(group, data) for group in _groups(ranges)]

    def _place_of(self, split: Split) -> Place | None:
        """Return a split's partition, if the topic is still the one of the plan."""
        data = split.data
        place = self._places.get(Partition(data["topic"], data["partition"]))
        same = place is not None and place.progress.epoch == data["epoch"]
        return place if same else None


def _data(partition: Partition, place: Place) -> dict[str, Any]:
    """Return the data of a split's partition for readers."""
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "topic_id": place.topic_id,
        "epoch": place.progress.epoch,
    }


def _groups(ranges: Sequence[Range]) -> Iterator[list[Range]]:
    """Put short ranges together: each split costs a fetch."""
    group: list[Range] = []
    held = 0
    for start, stop in ranges:
        long = stop - start >= _FAIR_SHARE
        if group and (long or held >= _MOST_PICKED):
            yield group
            group, held = [], 0
        if long:
            yield [(start, stop)]
        else:
            group.append((start, stop))
            held += stop - start
    if group:
        yield group


def _split(ranges: Sequence[Range], data: Mapping[str, Any]) -> Split:
    """Return one split of ranges, without the offsets between the ranges."""
    begin = ranges[0][0]
    count = sum(stop - start for start, stop in ranges)
    only = None
    if len(ranges) > 1:
        only = tuple(chain.from_iterable(range(a - begin, b - begin) for a, b in ranges))
    whole = None if only is None else ranges[-1][1] - begin
    return Split(count=count, data={**data, "start": begin}, only=only, whole=whole)


def offsets_of(split: Split, positions: Positions) -> list[Range]:
    """The offsets of positions in a split.

    >>> offsets_of(Split(count=3, data={"start": 100}, only=(1, 2, 7)), [(0, 3)])
    [(101, 103), (107, 108)]
    """
    start: int = split.data["start"]
    if split.only is None:
        return [(start + low, start + high) for low, high in positions]
    ranges: list[Range] = []
    for low, high in positions:
        for position in split.only[low:high]:
            offset = start + position
            if ranges and ranges[-1][1] == offset:
                ranges[-1] = (ranges[-1][0], offset + 1)
            else:
                ranges.append((offset, offset + 1))
    return ranges


def merge_splits(splits: Sequence[Split]) -> list[Split]:
    """Put retries of single messages of one partition, in one life of the topic, together.

    >>> one = Split(count=2, data={"topic": "t", "partition": 0, "start": 10}, only=(0, 5))
    >>> two = Split(count=1, data={"topic": "t", "partition": 0, "start": 3}, only=(0,))
    >>> merge_splits([one, two])
    [Split(count=3, data={'topic': 't', 'partition': 0, 'start': 3}, size=0, only=(0, 7, 12))]
    """
    whole = [split for split in splits if split.only is None]
    groups: dict[tuple[Any, ...], list[Split]] = {}
    for split in splits:
        if split.only is not None:
            data = {name: value for name, value in split.data.items() if name != "start"}
            groups.setdefault(tuple(sorted(data.items())), []).append(split)
    return whole + [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def _merged(splits: Sequence[Split]) -> Split:
    start = min(split.data["start"] for split in splits)
    found: dict[int, Any] = {}
    for split in splits:
        places = (split.data["start"] - start + position for position in split.only or ())
        found.update(zip(places, split.kept or (None,) * split.count, strict=True))
    only = tuple(sorted(found))
    kept = tuple(found[place] for place in only)
    return Split(
        count=len(only),
        data={**splits[0].data, "start": start},
        only=only,
        kept=kept if any(kept) else None,
    )
