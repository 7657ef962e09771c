"""The evidence of an ordeal: on disk while it happens, and read back when it is over.

Afterwards the ordeal's folder holds

    written.txt      a line for each record: number, topic id, partition, offset, time of its report
    troubles.jsonl   a line for each trouble: its kind, begin, end and particulars
    witness/*.txt    a line for each arrival: number, partition, offset, time
    driver.log       the drivers' warnings and figures, in order, each with its time and process
    checkpoint/      the dead letters
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Book", "Range", "Record", "Scribe", "Spot", "read_book"]


class Spot(NamedTuple):
    """The place of a record: which topic of the name, which partition, which offset."""

    topic_id: str
    partition: int
    offset: int

    @property
    def log(self) -> tuple[str, int]:
        """The partition of that topic."""
        return self.topic_id, self.partition


class Record(NamedTuple):
    """A number that the broker has taken."""

    spot: Spot
    at: float


class Range(NamedTuple):
    """Offsets ``[start, stop)`` of a partition of one topic, and the line that names them gone."""

    topic_id: str
    partition: int
    start: int
    stop: int
    line: str

    def holds(self, spot: Spot) -> bool:
        """Whether a place is in it."""
        same = spot.log == (self.topic_id, self.partition)
        return same and self.start <= spot.offset < self.stop


class Scribe:
    """Writes the evidence of an ordeal, so that nothing is lost with the process."""

    def __init__(self, folder: Path) -> None:
        self._written = (folder / "written.txt").open("a", buffering=1)
        self._troubles = (folder / "troubles.jsonl").open("a", buffering=1)

    def written(self, number: int, record: Record) -> None:
        """The broker has reported where a number is."""
        print(number, *record.spot, f"{record.at:.3f}", file=self._written)

    def trouble(self, kind: str, **particulars: Any) -> None:
        """A trouble is over."""
        print(json.dumps({"kind": kind, **particulars}), file=self._troubles)

    def close(self) -> None:
        """Close the files."""
        self._written.close()
        self._troubles.close()


@dataclass(slots=True)
class Book:
    """All that is known of an ordeal.

    Attributes:
        given: the records, by number.
        lives: the ids of the topics of the name, in order.
        troubles: as they were written.
        arrived: the numbers that were processed.
        dead: the numbers in dead letters that hold their record.
        expired: where the records were whose dead letters say that the log has lost them.
        gone: the ranges that a warning names as gone.
        ends: the last known end of each partition of a topic that a warning says was deleted.
        faults: warnings that know less than their driver had known.
        counted: the statistics' last count of expired offsets, by partition.
        lines: the warnings.
    """

    given: dict[int, Record] = field(default_factory=dict)
    lives: list[str] = field(default_factory=list)
    troubles: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)
    expired: set[Spot] = field(default_factory=set)
    gone: list[Range] = field(default_factory=list)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    counted: dict[int, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def lost(self) -> dict[tuple[str, int], float]:
        """Return before which offset the troubles took each log, where they did."""
        taken: dict[tuple[str, int], float] = defaultdict(float)
        life = self.lives[0]
        for trouble in self.troubles:
            match trouble["kind"]:
                case "remake":
                    taken.update({(life, number): inf for number, _ in enumerate(trouble["ends"])})
                    life = trouble["new"]
                case "delete":
                    place = (life, trouble["partition"])
                    taken[place] = max(taken[place], trouble["low"])
        return taken

    def read_log(self, lines: Iterable[str]) -> None:
        """Read what the drivers said, one after the other."""
        reading = _Reading(self)
        for line in lines:
            reading.take(line.rstrip("\n"))


def read_book(folder: Path, lives: list[str]) -> Book:
    """Read the evidence of an ordeal that is over."""
    book = Book(lives=lives)
    for line in _lines(folder / "written.txt"):
        number, topic_id, partition, offset, at = line.split()
        spot = Spot(topic_id, int(partition), int(offset))
        book.given[int(number)] = Record(spot, float(at))
    book.troubles = [json.loads(line) for line in _lines(folder / "troubles.jsonl")]
    for path in (folder / "witness").iterdir():
        book.arrived += [int(line.split()[0]) for line in _lines(path)]
    for path in (folder / "checkpoint/sparkstorm/dead-letters").glob("*.jsonl"):
        for line in [*_lines(path)][1:]:
            _read_letter(book, json.loads(line))
    book.read_log(_lines(folder / "driver.log"))
    return book


def _lines(path: Path) -> Iterator[str]:
    """Yield the whole lines of a file; a killed process may have left half a line."""
    with path.open(errors="replace") as file:
        yield from (line for line in file if line.endswith("\n"))


def _read_letter(book: Book, letter: dict[str, Any]) -> None:
    if letter["values"] is not None:
        book.dead.add(int(dict(zip(letter["fields"], letter["values"], strict=True))["value"]))
    elif letter["failure"]["reason"] == "expired":
        _, partition, offset = letter["msg_id"]["v"]
        book.expired.add(Spot(letter["source"]["topic_id"], partition, offset))


_WARNING = re.compile(r"^[\d.]+ (?P<pid>\d+) [^ /]+/(?P<partition>\d+):? (?P<said>.*)$")
_FIGURES = re.compile(r"^[\d.]+ (?P<pid>\d+) stands (?P<figures>\{.*\})$")
_ANEW = re.compile(
    r"its topic was deleted and made anew, the topic id (?P<old>\S+) became (?P<new>\S+): .*"
    r"planned up to the offset (?P<start>\d+).* last known end is (?P<stop>\d+)"
)
_CUTS = (
    re.compile(r"no offset (?P<start>\d+), it begins at \d+: going on at (?P<stop>\d+);"),
    re.compile(r"no offset (?P<start>\d+), it goes from .*: going on at (?P<stop>\d+)"),
    re.compile(r"begins at (?P<stop>\d+): \d+ offsets were gone(?P<start>)"),
    re.compile(r"read from its beginning, the offset (?P<stop>\d+)(?P<start>)"),
    re.compile(
        r"the log has become shorter, it ended at (?P<stop>\d+) and ends at (?P<start>\d+) now"
    ),
)


class _End(NamedTuple):
    """An end of a partition that a driver has shown, after so many batches."""

    pid: str
    batches: int
    end: int


class _Reading:
    """Follows the drivers' log: which topic each partition was read from when a line was said."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._ids: dict[int, str] = defaultdict(lambda: book.lives[0])
        self._seen: dict[int, list[_End]] = defaultdict(list)

    def take(self, line: str) -> None:
        """Read the next line."""
        if (found := _FIGURES.match(line)) is not None:
            self._note_figures(found["pid"], json.loads(found["figures"]))
        elif (found := _WARNING.match(line)) is not None:
            self._book.lines.append(line)
            self._note_warning(int(found["partition"]), found["pid"], found["said"], line)

    def _note_figures(self, pid: str, figures: dict[str, Any]) -> None:
        for name, one in figures["partitions"].items():
            number = int(name.rpartition("/")[2])
            self._book.counted[number] = one["expired"]
            self._seen[number].append(_End(pid, figures["batches"], one["end"]))

    def _note_warning(self, partition: int, pid: str, said: str, line: str) -> None:
        if (anew := _ANEW.search(said)) is not None:
            life, end = (anew["old"], partition), int(anew["stop"])
            self._book.gone.append(Range(*life, int(anew["start"]), end, line))
            self._book.ends[life] = max(end, self._book.ends.get(life, 0))
            known = self._known_end(partition, pid)
            if end < known:
                self._book.faults.append(f"the end {known} was known: {line}")
            self._ids[partition] = anew["new"]
            self._seen[partition].clear()
        for cut in _CUTS:
            if (found := cut.search(said)) is not None:
                place = (self._ids[partition], partition)
                start, stop = int(found["start"] or 0), int(found["stop"])
                self._book.gone.append(Range(*place, start, stop, line))

    def _known_end(self, partition: int, pid: str) -> int:
        """Return the end that a driver must know when it finds the topic made anew.

        Its own last figures tell, and those of an earlier driver that planned a batch after them:
        the checkpoint then has the end. Figures may be as old as two batches, and so be of the
        topic before.
        """
        seen = self._seen[partition]
        first = {one.pid: one.batches for one in reversed(seen)}
        last = {one.pid: one.batches for one in seen}
        known = [
            one.end
            for one in seen
            if one.batches >= first[one.pid] + 2
            and (one.pid == pid or one.batches + 2 <= last[one.pid])
        ]
        return max(known, default=0)
