"""The partitions of the sources: how far each has come, and the message that holds it back."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.spark.tables.last_plan import LastPlan
from sparkstorm.spark.tables.messages import Group, groups_of
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.spark.tables.places import place_of, spans_of
from sparkstorm.verdicts import Failure

__all__ = ["partition_rows"]


@final
@dataclass(slots=True)
class _Partition:
    """The figures of one partition of a spout."""

    committed: int | None = None
    planned: int | None = None
    pending: int = 0
    waiting: int = 0
    oldest: int | None = None
    failure: Failure | None = None

    def add(self, group: Group) -> None:
        """Count the messages of a group, and note the oldest."""
        assert group.split is not None  # noqa: S101 - only these have a partition
        self.pending += group.count
        self.waiting += group.count if group.state in ("waiting", "failed") else 0
        base = place_of(group.split.data).base
        first = min((start for start, _ in spans_of(group.split, group.chosen)), default=None)
        if base is None or first is None:
            return
        if self.oldest is None or base + first < self.oldest:
            self.oldest, self.failure = base + first, group.failure

    def row(self, spout: str, name: str, letters: int) -> Piece:
        """Return the partition as a row."""
        why = self.failure
        held = (None, None) if why is None else (why.component, why.message)
        counts = (self.committed, self.planned, self.pending, self.waiting, letters)
        return Piece((spout, name, *counts, self.oldest, *held))


def partition_rows(last: LastPlan, letters: Iterable[DeadLetter]) -> Iterator[Piece]:
    """Yield a row for each partition that the last plan or a dead letter names."""
    found: dict[tuple[str, str], _Partition] = {}
    for owner, cursor in last.plan.cursors.items():
        for name, committed, planned in _cursors(cursor):
            found[owner.rpartition("/")[0], name] = _Partition(committed, planned)
    for group in groups_of(last):
        name_of = None if group.split is None else place_of(group.split.data).partition
        if name_of is not None:
            key = group.owner.rpartition("/")[0], name_of
            found.setdefault(key, _Partition()).add(group)
    dead: Counter[tuple[str, str]] = Counter()
    for letter in letters:
        name_of = place_of(letter.source or {}).partition
        if name_of is not None:
            dead[letter.spout, name_of] += 1
    for key in sorted({*found, *dead}):
        yield found.get(key, _Partition()).row(*key, dead[key])


def _cursors(cursor: Any) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield partition, committed and planned position, of the cursors of our own spouts."""
    if not isinstance(cursor, dict):
        return
    if isinstance(cursor.get("partitions"), dict):  # a Kafka spout
        for topic, numbers in cursor["partitions"].items():
            for number, progress in numbers.items():
                yield f"{topic}/{number}", progress["point"], progress["emitted_to"]
        return
    for path, place in cursor.items():
        if isinstance(place, list) and len(place) == 2:  # files of lines: (bytes, lines)
            yield path, None, place[1]
