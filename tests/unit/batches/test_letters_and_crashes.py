"""Dead letters and replays when the driver dies: never lost, never twice under two names.

Also the parts that payloads come from: what a hosted task remembers, and reading apart.
"""

import errno
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.errors import CheckpointError
from sparkstorm.planning.plan import StreamKey
from sparkstorm.sources.blame import Attempts
from sparkstorm.sources.originals import Original, Originals
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.partitioned import payloads
from sparkstorm.sources.partitioned.payloads import read_payloads, read_payloads_apart
from sparkstorm.streams import Stream
from sparkstorm.testing import LocalRunner, ManualClock, MemorySink

TOTAL = 40
BAD = {3, 17, 25}


class Numbers(ss.PartitionedSpout):
    """Forty numbers, ten in a split; progress is how far it planned."""

    outputs = "n int"
    replayable = True

    def __init__(self) -> None:
        self.planned = 0
        self.ended: list[int] = []

    def plan(self, limit: int) -> list[ss.Split]:
        count = min(10, limit, TOTAL - self.planned)
        split = ss.Split(count=count, data={"from": self.planned, "count": count})
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(split.data["count"])]

    def ack(self, split: ss.Split, positions: Any) -> None:
        for start, stop in positions:
            for position in range(start, stop):
                picked = split.only[position] if split.only is not None else position
                self.ended.append(split.data["from"] + picked)

    def snapshot(self) -> int:
        return self.planned

    def restore(self, snapshot: int) -> None:
        self.planned = snapshot

    def exhausted(self) -> bool:
        return self.planned >= TOTAL


class Sieve(ss.BasicBolt):
    """Fails the bad numbers, unless told to bear them."""

    outputs = "n int"

    def __init__(self, bears: bool) -> None:
        self.bears = bears

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] in BAD and not self.bears:
            raise ValueError(f"bad {tup['n']}")
        PASSED.append(tup["n"])
        collector.emit([tup["n"]])


PASSED: list[int] = []
"""What the sieve let pass, committed or not."""


class Crash(BaseException):
    """The driver dies; nothing may catch it."""


class DyingFiles(MemoryFiles):  # type: ignore[misc]  # a fake of the final one
    """Files whose n-th change kills the driver, before or after it is there."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.changes = 0

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        self._change(lambda: super(DyingFiles, self).write(name, data, lasting=lasting))

    def delete(self, name: str) -> None:
        self._change(lambda: super(DyingFiles, self).delete(name))

    def _change(self, change: Any) -> None:
        self.changes += 1
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise Crash
        change()
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise Crash


class FullFiles(MemoryFiles):  # type: ignore[misc]  # a fake of the final one
    """Files on a disk that is full, for dead letters, until it is not."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        if self.full and name.startswith("dead-letters/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(name, data, lasting=lasting)


def topology(bears: bool = False, sink: MemorySink | None = None) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("sieve", Sieve(bears), parallelism=2).shuffle_grouping("numbers")
    if sink is not None:
        builder.set_bolt("sink", sink).shuffle_grouping("sieve")
    return builder.create_topology()


def runner_on(files: MemoryFiles, bears: bool, sink: MemorySink | None = None) -> LocalRunner:
    return LocalRunner(
        topology(bears, sink),
        config=ss.Config(
            retry_backoff_secs=0,
            batch_max_messages=10,
            max_retries=1,
            processing_guarantee="at-least-once" if sink is None else "exactly-once",
        ),
        clock=ManualClock(),
        files=files,
    )


def run(files: MemoryFiles, *, bears: bool = False, sink: MemorySink | None = None) -> list[int]:
    """Run until all has ended or the driver dies; return what the sieve let pass."""
    PASSED.clear()
    runner = runner_on(files, bears, sink)
    try:
        runner.__enter__()
        runner.run_until_idle()
        assert runner.coordinator.drained
        runner.__exit__(None, None, None)
    except Crash:
        pass  # a dead driver closes nothing
    return list(PASSED)


def letters(files: MemoryFiles) -> Counter[int]:
    return Counter(one.values[0] for one in LetterStore(files).letters() if one.values)


def changes_of(files: DyingFiles, **options: Any) -> int:
    run(files, **options)
    return files.changes


@pytest.mark.sweep
@pytest.mark.parametrize("moment", range(1, 2 * changes_of(DyingFiles()) + 1))
def test_a_crash_loses_no_letter_and_makes_none_twice(moment: int) -> None:
    """Before or after any change of any file: every bad number is one letter in the end."""
    files = DyingFiles()
    files.left = moment
    run(files)
    files.left = None
    run(files)
    assert letters(files) == Counter(BAD)
    assert {one.attempts for one in LetterStore(files).letters()} == {2}


def test_a_letter_that_cannot_be_written_ends_the_run_and_is_written_by_the_next() -> None:
    """Whatever is asked of the run afterwards, it plans nothing that would forget the message."""
    files = FullFiles()
    with runner_on(files, bears=False) as runner:
        with pytest.raises(CheckpointError, match="dead letters of 'numbers' could not be written"):
            runner.run_until_idle()
        files.full = False
        with pytest.raises(CheckpointError):
            runner.run_until_idle()
    run(files)
    assert letters(files) == Counter(BAD)


def test_a_run_does_not_look_drained_when_its_last_letter_cannot_be_written() -> None:
    """Whoever waits for the end hears of the error instead."""
    files = FullFiles()
    files.full = False
    with runner_on(files, bears=False) as runner:
        while runner.statistics().given_up < len(BAD) - 1:
            runner.step()
        files.full = True
        with pytest.raises(CheckpointError):
            runner.run_until_idle()
        assert not runner.coordinator.drained


def asked(sink: MemorySink | None = None) -> DyingFiles:
    """A finished run whose letters are asked for."""
    files = DyingFiles()
    run(files, sink=sink)
    store = LetterStore(files)
    RequestBox(store).ask(store.letters(), wall=0.0)
    files.changes = 0
    return files


@pytest.mark.sweep
@pytest.mark.parametrize("moment", range(1, 2 * changes_of(asked(), bears=True) + 1))
def test_a_crash_during_a_replay_loses_no_letter(moment: int) -> None:
    """A letter is there until its replay is committed; the next driver does what is left."""
    files = asked()
    files.left = moment
    first = run(files, bears=True)
    remaining = set(letters(files))
    files.left = None
    second = run(files, bears=True)
    assert remaining <= set(second)
    assert set(first) | set(second) >= BAD
    assert letters(files) == Counter()
    assert RequestBox(LetterStore(files)).names() == []


def test_a_replay_that_cannot_be_written_down_is_done_by_the_next_run() -> None:
    """The error comes out as it is; from then on the run does nothing and says why."""
    files = FullFiles()
    files.full = False
    run(files)
    store = LetterStore(files)
    RequestBox(store).ask(store.letters(), wall=0.0)
    files.full = True
    with runner_on(files, bears=False) as runner:
        with pytest.raises(OSError, match="No space left"):
            runner.run_until_idle()
        with pytest.raises(CheckpointError, match=r"verdicts: OSError: .*No space left"):
            runner.run_until_idle()
    files.full = False
    run(files)
    assert {one.replays for one in store.letters()} == {1}
    assert letters(files) == Counter(BAD)


@pytest.mark.sweep
@pytest.mark.parametrize("moment", range(1, 2 * changes_of(asked()) + 1))
def test_a_crash_during_a_replay_that_fails(moment: int) -> None:
    """Each letter is there at any time, and replayed once by one request if nothing crashes."""
    files = asked()
    files.left = moment
    run(files)
    assert letters(files) == Counter(BAD)
    files.left = None
    run(files)
    found = list(LetterStore(files).letters())
    assert letters(files) == Counter(BAD)
    assert {one.replays for one in found} == {1}
    assert RequestBox(LetterStore(files)).names() == []


@pytest.mark.sweep
@pytest.mark.parametrize(
    "moment", range(1, 2 * changes_of(asked(sink := MemorySink()), bears=True, sink=sink) + 1)
)
def test_a_crash_during_a_replay_applies_it_once(moment: int) -> None:
    """If batches happen exactly once, a batch with replays is run again with the same ones."""
    sink = MemorySink()
    files = asked(sink)
    assert {n for (n,) in sink.rows} == set(range(TOTAL)) - BAD
    files.left = moment
    run(files, bears=True, sink=sink)
    files.left = None
    run(files, bears=True, sink=sink)
    assert Counter(n for (n,) in sink.rows) == Counter(range(TOTAL))
    assert letters(files) == Counter()
    assert RequestBox(LetterStore(files)).names() == []


class TestAttempts:
    def original(self, number: int) -> Original:
        return Original("default", (number,), None, float(number))

    def test_it_counts_until_the_end(self) -> None:
        """Attempts add up, the first beginning stays, an end forgets all."""
        attempts = Attempts()
        assert attempts.emitted("a").attempt == 1
        attempts.failed("a", self.original(5), 10)
        known = attempts.failed("a", self.original(9), 10)
        assert (known.attempts, known.began, known.next.attempt) == (2, 5.0, 3)
        assert (attempts.left_failed, attempts.nbytes) == (1, 10)
        attempts.emitted("a")
        assert attempts.left_failed == 0
        assert attempts.forget("a") == known
        assert (attempts.forget("a"), attempts.nbytes) == (None, 0)
        assert attempts.emitted("a").attempt == 1

    def test_it_is_bounded(self) -> None:
        """The oldest payloads go first, then the oldest messages."""
        attempts = Attempts(most=5, most_bytes=30)
        for number in range(10):
            attempts.failed(number, self.original(number), 10)
        assert (attempts.nbytes, attempts.left_failed) == (30, 5)
        known = {number: attempts.forget(number) for number in range(10)}
        assert [n for n, one in known.items() if one is not None] == [5, 6, 7, 8, 9]
        assert [n for n, one in known.items() if one and one.original] == [7, 8, 9]


class TestOriginals:
    @pytest.mark.parametrize("stream", [Stream("a string, b int"), Stream(["a", "b"])])
    def test_rows_come_back_also_after_most_are_dropped(self, stream: Stream) -> None:
        rows = [(f"{number}" * 50, number) for number in range(2_000)]
        direct = [number % 7 for number in range(2_000)]
        body = encode_rows(stream, rows)
        load = packed_load(StreamKey("s", "x"), 1, body, first=0, lane=0, direct=direct)
        originals = Originals(load, began=3.0)
        whole = originals.nbytes
        kept = list(range(5, 2_000, 40))
        assert not originals.wastes(1_500)
        assert originals.wastes(len(kept))
        originals.keep(kept)
        assert originals.nbytes < whole / 20
        assert originals.of([45, 5]) == [
            Original("x", rows[45], 45 % 7, 3.0),
            Original("x", rows[5], 5 % 7, 3.0),
        ]


class Reading(ss.PartitionedSpout):
    """Does to the process that reads it what its name says."""

    outputs = "n int"

    def __init__(self, what: str) -> None:
        self.what = what

    def plan(self, limit: int) -> list[ss.Split]:
        return []

    def read(self, split: ss.Split) -> Iterable[Any]:
        sys.stdout.write("chatter\n")
        if self.what == "die":
            os._exit(9)
        if self.what == "hang":
            time.sleep(100)
        if self.what == "raise":
            raise OSError("no such log")
        return [(n,) for n in range(5)]

    def origins(self, split: ss.Split) -> list[dict[str, bytes]]:
        return [{"raw": b"%d" % position} for position in split.only or ()]


STREAM = Stream("n int")
SPLIT = ss.Split(count=2, data={}, only=(1, 3))


@pytest.mark.process
class TestPayloads:
    def test_read_here_and_apart(self) -> None:
        expected = [((1,), "", {"raw": b"1"}), ((3,), "", {"raw": b"3"})]
        assert read_payloads(Reading("be good"), SPLIT, STREAM) == expected
        assert read_payloads_apart(Reading("be good"), SPLIT, STREAM) == expected

    def test_reading_apart_survives_a_poison(self) -> None:
        """The process that reads dies, and the letter says so."""
        for payload in read_payloads_apart(Reading("die"), SPLIT, STREAM):
            assert payload.values is None
            assert "ends the process that reads it (exit code 9)" in payload.note

    def test_reading_apart_does_not_hang(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(payloads, "_PATIENCE_SECS", 2.0)
        (one, _) = read_payloads_apart(Reading("hang"), SPLIT, STREAM)
        assert (one.values, "takes over" in one.note) == (None, True)

    @pytest.mark.parametrize("read", [read_payloads, read_payloads_apart])
    def test_a_source_that_raises(self, read: Any) -> None:
        (one, _) = read(Reading("raise"), SPLIT, STREAM)
        assert one == (None, "the payload could not be read: OSError: no such log", {})


class Fickle(ss.PartitionedSpout):
    """One message, of a source that answers the executors and at times not the driver."""

    outputs = "n int"
    away: ClassVar[list[bool]] = []

    def __init__(self) -> None:
        self.left = 1

    def plan(self, limit: int) -> list[ss.Split]:
        self.left, count = 0, self.left
        return [ss.Split(count=1)] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        if self.away and self.away.pop():
            raise ss.SpoutConnectionError("nobody there")
        return [(7,)]

    def exhausted(self) -> bool:
        return not self.left


class Refuse(ss.Bolt):
    def execute(self, tup: ss.Tuple) -> None:
        self.collector.fail(tup, "never")


def test_no_letter_goes_without_its_payload_for_a_source_that_is_away() -> None:
    """The message is tried once more, and is given up when its payload can be read."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", Fickle())
    builder.set_bolt("out", Refuse()).shuffle_grouping("in")
    files, config = MemoryFiles(), ss.Config(max_retries=0, retry_backoff_secs=0.0)
    # from the last: the executor reads, the driver cannot; and so again; then both can
    Fickle.away = [False, False, True, False, True, False]
    with LocalRunner(builder.create_topology(), config=config, files=files) as runner:
        statistics = runner.run_until_idle()
    [letter] = LetterStore(files).letters()
    assert (letter.values, letter.note, letter.attempts) == ((7,), "", 1)
    assert (statistics.given_up, statistics.failed, statistics.pending) == (1, 3, 0)
