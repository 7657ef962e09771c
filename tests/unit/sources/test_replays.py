"""Replays of many letters: what they ask of the files, and what they bear from them."""

import errno
import os
from collections.abc import Iterable

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import LocalRunner, ManualClock


class Gone(MemoryFiles):  # type: ignore[misc]  # a fake of the final one
    """Files of which some cannot be read or deleted for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.away = ""
        self.faults = 0

    def read(self, name: str) -> bytes | None:
        self._check(name)
        return super().read(name)

    def delete(self, name: str) -> None:
        self._check(name)
        super().delete(name)

    def _check(self, name: str) -> None:
        if self.away and name.startswith(self.away):
            self.faults += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class Sieve(ss.BasicBolt):
    """Fails what is not to pass."""

    def __init__(self, passes: bool) -> None:
        self.passes = passes

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if not self.passes:
            raise ValueError("no")


class CountingFiles(MemoryFiles):  # type: ignore[misc]  # a fake of the final one
    """Counts how often a dead letter's file is read or changed."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = 0

    def read(self, name: str) -> bytes | None:
        self.touched += name.startswith("dead-letters/")
        return super().read(name)

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        self.touched += name.startswith("dead-letters/")
        super().write(name, data, lasting=lasting)

    def delete(self, name: str) -> None:
        self.touched += name.startswith("dead-letters/")
        super().delete(name)


def letter(number: int) -> DeadLetter:
    return DeadLetter(
        id=f"{number:020x}",
        topology="t",
        run="r",
        spout="numbers",
        task=0,
        stream="default",
        fields=("n",),
        values=(number,),
        msg_id=number,
        failure=ss.Failure(reason=ss.Reason.ERROR, component="sieve", message="no"),
        attempts=1,
        first_time=float(number),
        last_time=float(number),
    )


def ask(files: MemoryFiles, numbers: Iterable[int], rate: float | None = None) -> LetterStore:
    """Write letters, each into a file of its own, and ask for all of them."""
    store = LetterStore(files)
    letters = [letter(number) for number in numbers]
    for one in letters:
        store.write([one])
    RequestBox(store).ask(letters, wall=0.0, rate=rate)
    return store


def runner_on(
    files: MemoryFiles,
    *,
    passes: bool,
    clock: ManualClock | None = None,
    own: Iterable[int] = (),
) -> LocalRunner:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(own, "n int"))
    builder.set_bolt("sieve", Sieve(passes)).shuffle_grouping("numbers")
    return LocalRunner(
        builder.create_topology(),
        config=ss.Config(max_retries=0, batch_max_messages=10),
        clock=clock or ManualClock(),
        files=files,
    )


def touches(count: int, *, passes: bool) -> int:
    """How often files are touched by the replay of so many letters, ten at a time."""
    files = CountingFiles()
    store = ask(files, range(count))
    files.touched = 0
    with runner_on(files, passes=passes) as runner:
        statistics = runner.run_until_idle()
    touched = files.touched
    assert (statistics.replayed, statistics.given_up) == ((count, 0) if passes else (0, count))
    assert [one.replays for one in store.letters()] == ([] if passes else [1] * count)
    assert RequestBox(store).names() == []
    return touched


@pytest.mark.sweep
@pytest.mark.parametrize("passes", [True, False])
def test_each_letter_costs_the_same_however_many_there_are(passes: bool) -> None:
    """Those that fail again are written together; only files of what has ended are looked into."""
    assert touches(200, passes=passes) < 2.2 * touches(100, passes=passes)


def damage(files: MemoryFiles) -> str:
    """Put half a line among the letters; return its file."""
    name = "dead-letters/00000000009999-abc.jsonl"
    files.write(name, b'{"version": 1, "half a li\n')
    return name


def test_a_damaged_line_holds_up_the_request_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """People are told once; when they have mended it, the letters are replayed by the same run."""
    files, clock = MemoryFiles(), ManualClock()
    store = ask(files, range(3))
    name = damage(files)
    with runner_on(files, passes=True, clock=clock) as runner:
        for _ in range(100):
            assert runner.run_until_idle().acked == 0
            clock.advance(10)
        assert runner.coordinator.drained  # the end of the run does not wait for people
        assert caplog.text.count(f"line 1 of {name} is not a dead letter") == 1
        assert len(RequestBox(store).names()) == 1
        files.delete(name)
        clock.advance(60)
        assert runner.run_until_idle().replayed == 3
    assert list(store.letters()) == []
    assert RequestBox(store).names() == []


@pytest.mark.parametrize("passes", [True, False])
def test_damage_that_comes_while_letters_are_on_their_way(passes: bool) -> None:
    """What is on its way ends as usual; the rest waits until the line is mended."""
    files, clock = MemoryFiles(), ManualClock()
    store = ask(files, range(12))
    with runner_on(files, passes=passes, clock=clock) as runner:
        runner.step()
        last = f"dead-letters/{store.names()[-1]}"
        line = files.read(last) or b""
        files.write(last, line[:20])
        statistics = runner.run_until_idle()
        assert (statistics.replayed, statistics.given_up) == ((11, 0) if passes else (0, 11))
        files.write(last, line)
        clock.advance(60)
        statistics = runner.run_until_idle()
    assert (statistics.replayed, statistics.given_up) == ((12, 0) if passes else (0, 12))
    assert [one.replays for one in store.letters()] == ([] if passes else [1] * 12)
    assert RequestBox(store).names() == []


def test_files_that_are_away_for_a_while_lose_no_letter_and_no_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Planning goes on, what spouts have emitted too; the request is taken up again, told once."""
    files, clock = Gone(), ManualClock()
    store = ask(files, range(3))
    files.away = "dead-letters/0"
    with runner_on(files, passes=True, clock=clock, own=range(4)) as runner:
        for _ in range(30):
            assert runner.run_until_idle().acked == 4
            assert not runner.coordinator.drained  # the end of the run waits
            clock.advance(1)
        assert 1 < files.faults < 10
        assert caplog.text.count("Input/output error") == 1
        assert len(RequestBox(store).names()) == 1
        files.away = ""
        clock.advance(60)
        assert runner.run_until_idle().replayed == 3
        assert runner.coordinator.drained
    assert list(store.letters()) == []
    assert RequestBox(store).names() == []


def test_one_file_that_is_away_holds_up_its_letters_alone() -> None:
    """Letters that came before it are not emitted twice, those behind it not left behind."""
    files, clock = Gone(), ManualClock()
    store = ask(files, range(30))
    with runner_on(files, passes=True, clock=clock) as runner:
        runner.step()
        files.away = f"dead-letters/{store.names()[15]}"
        assert runner.run_until_idle().acked == 15
        files.away = ""
        clock.advance(60)
        assert runner.run_until_idle().acked == 30
    assert list(store.letters()) == []
    assert RequestBox(store).names() == []


def test_the_end_of_a_run_does_not_wait_for_ever() -> None:
    """Nothing is lost by that: the request is there for the next run."""
    files, clock = Gone(), ManualClock()
    store = ask(files, range(3))
    files.away = "dead-letters/0"
    with runner_on(files, passes=True, clock=clock) as runner:
        for _ in range(30):
            runner.run_until_idle()
            clock.advance(10)
        assert runner.coordinator.drained
    files.away = ""
    with runner_on(files, passes=True) as runner:
        assert runner.run_until_idle().replayed == 3
    assert RequestBox(store).names() == []


@pytest.mark.parametrize("rate", [None, 3.0])
def test_a_request_that_cannot_be_deleted_is_deleted_later(
    caplog: pytest.LogCaptureFixture, rate: float | None
) -> None:
    """Its letters have ended, so nothing is emitted again."""
    files, clock = Gone(), ManualClock()
    store = ask(files, range(3), rate)
    with runner_on(files, passes=True, clock=clock) as runner:
        files.away = "dead-letters/replay/"
        for _ in range(30):
            runner.run_until_idle()
            clock.advance(1)
        assert caplog.text.count("Input/output error") == 1
        files.away = ""
        clock.advance(60)
        assert runner.run_until_idle().acked == 3
    assert RequestBox(store).names() == []


def test_a_request_that_could_not_be_read_is_taken_up_later() -> None:
    """Whoever goes on after the error finds it again."""
    files, clock = Gone(), ManualClock()
    with runner_on(files, passes=True, clock=clock) as runner:
        store = ask(files, range(3))
        files.away = "dead-letters/replay/"
        clock.advance(1)
        with pytest.raises(OSError, match="Input/output error"):
            runner.step()
        files.away = ""
        clock.advance(1)
        assert runner.run_until_idle().replayed == 3
    assert RequestBox(store).names() == []
