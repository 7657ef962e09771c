"""What is given up becomes a dead letter, and comes back when it is asked for: both runners."""

import gc
import logging
import os
import threading
import tracemalloc
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles, MemoryFiles
from sparkstorm.components.context import TaskContext
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.spouts import IteratorSpout, LinesSpout, ReplayingSpout
from sparkstorm.tasks.report import LINES
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

AT_ONCE: dict[str, object] = {"retry_backoff_secs": 0, "max_retries": 2}


class Picky(ss.BasicBolt):
    """Emits what it sees; cannot bear what contains "bad" unless the file ``cure`` is there."""

    outputs = "text string"

    def __init__(self, cure: Path | str = "/nowhere/at/all") -> None:
        self.cure = os.fspath(cure)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        text = str(tup[0])
        if "bad" in text and not os.path.exists(self.cure):
            raise ValueError(f"cannot bear {text}")
        collector.emit([text])


class Enrich(ss.BasicBolt):
    """Looks a number up: one in a hundred fails at first, one in a thousand always."""

    outputs = "n long, customer string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        n = tup["n"]
        if n % 1_000 == 500:
            raise ValueError(f"{n} has no customer")
        if n % 100 == 7 and tup.attempt == 1:
            raise TimeoutError("the database is busy")
        collector.emit([n, f"customer {n}"])


@dataclass
class Mailbox:
    """A sink that cannot be pickled."""

    letters: list[DeadLetter] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def __call__(self, letters: list[DeadLetter]) -> None:
        with self.lock:
            self.letters += letters


class NeverAcks(ss.Bolt):
    """Keeps every tuple open, for ever."""

    def execute(self, tup: ss.Tuple) -> None:
        pass


class Deadly(ss.BasicBolt):
    """Ends its process at the word "poison"."""

    outputs = "text string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup[0] == "poison":
            os._exit(7)
        collector.emit([tup[0]])


class NoFail(ss.Spout):
    """A spout that takes no interest in failures; its values may be anything."""

    outputs = ("value",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        self.collector = collector
        self.emitted = 0

    def next_tuple(self) -> None:
        if self.emitted < len(self.values):
            self.emitted += 1
            number = self.emitted - 1
            self.collector.emit([self.values[number]], msg_id=number)

    def exhausted(self) -> bool:
        return self.emitted == len(self.values)


class LateGivingUp(ReplayingSpout):
    """Gives a message up in ``next_tuple``, long after ``fail`` has returned."""

    outputs = "text string"

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        super().open(config, context, collector)
        self.left = ["bad"]
        self.failures: list[tuple[Any, ss.Failure]] = []

    def next_message(self) -> tuple[str, list[str]] | None:
        return ("id", [self.left.pop()]) if self.left else None

    def fail(self, msg_id: Any, failure: ss.Failure) -> None:
        self.failures.append((msg_id, failure))

    def next_tuple(self) -> None:
        if self.failures:
            msg_id, failure = self.failures.pop()
            self.ack(msg_id)
            self.collector.give_up(msg_id, failure)
        super().next_tuple()

    def exhausted(self) -> bool:
        return not (self.left or self.failures or self.kept)


class Log(ss.PartitionedSpout):
    """A log of texts; "expired" is gone from it, "empty" holds nothing."""

    outputs = "text string"

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.planned = 0
        self.done: list[tuple[str, Any]] = []

    def plan(self, limit: int) -> list[ss.Split]:
        count = len(self.texts) - self.planned
        split = ss.Split(count=count, data={"log": "a", "from": self.planned})
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> Iterable[Any]:
        special = {"expired": ss.EXPIRED, "empty": None}
        for text in self.texts[split.data["from"] :]:
            yield special.get(text, (text,))

    def ack(self, split: ss.Split, positions: Any) -> None:
        self.done.append(("ack", positions))

    def give_up(self, split: ss.Split, positions: Any, failure: ss.Failure) -> None:
        self.done.append((failure.reason.value, positions))

    def snapshot(self) -> int:
        return self.planned

    def restore(self, snapshot: int) -> None:
        self.planned = snapshot

    def exhausted(self) -> bool:
        return self.planned == len(self.texts)


class Vanishing(Log):
    """A log that cannot be read any more once a file is there."""

    def __init__(self, gone: Path) -> None:
        super().__init__(["good", "bad"])
        self.gone = gone

    def read(self, split: ss.Split) -> Iterable[Any]:
        if self.gone.exists():
            raise FileNotFoundError("the log is gone")
        return super().read(split)


class Direct(ss.Spout):
    """Emits one bad message straight to the last task of ``picky``."""

    outputs = MappingProxyType({"straight": ss.Stream("text string", direct=True)})

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        self.collector, self.emitted = collector, False
        self.target = context.component_tasks("picky")[-1]

    def next_tuple(self) -> None:
        if not self.emitted:
            self.emitted = True
            self.collector.emit_direct(self.target, ["bad"], msg_id=1, stream="straight")

    def exhausted(self) -> bool:
        return self.emitted


def payload_of(letter: DeadLetter) -> Mapping[str, Any]:
    assert letter.payload is not None
    return letter.payload


def source_of(letter: DeadLetter) -> Mapping[str, Any]:
    assert letter.source is not None
    return letter.source


def values_of(letter: DeadLetter) -> Sequence[Any]:
    assert letter.values is not None
    return letter.values


def wired(spout: Any, bolt: Any, id_: str = "source", **settings: object) -> ss.Topology:
    builder = ss.TopologyBuilder()
    declarer = builder.set_spout(id_, spout)
    for key, value in settings.items():
        declarer.add_configuration(key, value)
    if isinstance(spout, Direct):
        builder.set_bolt("picky", bolt, parallelism=3).direct_grouping(id_, "straight")
    else:
        builder.set_bolt("picky", bolt, parallelism=2).shuffle_grouping(id_)
    return builder.create_topology()


@pytest.fixture
def store(tmp_path: Path) -> LetterStore:
    """The letters beside the checkpoint that ``run_keeping`` gives to its runs."""
    return LetterStore(LocalFiles(tmp_path / "checkpoint" / "sparkstorm"))


@pytest.fixture
def run_keeping(
    request: pytest.FixtureRequest, tmp_path: Path, run_topology: Any
) -> Callable[..., Any]:
    """Like ``run_topology``, on a checkpoint; every run of a test goes on where the last ended."""
    checkpoint = tmp_path / "checkpoint"
    if request.node.callspec.params["run_topology"] == "local":
        return partial(run_topology, files=LocalFiles(checkpoint / "sparkstorm"))
    return partial(run_topology, checkpoint=checkpoint)


def only(store: LetterStore) -> DeadLetter:
    (letter,) = store.letters()
    return letter


def ask(store: LetterStore, rate: float | None = None) -> None:
    RequestBox(store).ask(store.letters(), wall=0.0, rate=rate)


def test_letter_of_a_partitioned_spout(
    run_keeping: Any, store: LetterStore, tmp_path: Path
) -> None:
    """It has payload, coordinates, cause, traceback, attempts and times; the rest is acked."""
    path = tmp_path / "a.txt"
    path.write_text("good\nbad one\nfine\nbad two\n")
    with run_keeping(wired(LinesSpout(path), Picky()), AT_ONCE) as play:
        statistics = play.drain()
    assert (statistics.acked, statistics.given_up, statistics.dead_letters) == (2, 2, 2)
    letters = {payload_of(letter)["sentence"]: letter for letter in store.letters()}
    assert sorted(letters) == ["bad one", "bad two"]
    one = letters["bad two"]
    assert (one.spout, one.task, one.stream, one.msg_id) == ("source", 0, "default", (str(path), 4))
    assert (source_of(one)["path"], source_of(one)["position"]) == (str(path), 3)
    assert (one.failure.reason, one.failure.component) == (ss.Reason.ERROR, "picky")
    assert one.failure.message == "ValueError: cannot bear bad two"
    assert "raise ValueError" in one.failure.traceback
    assert (one.attempts, one.failure.attempt, one.replays) == (3, 3, 0)
    assert one.first_time <= one.last_time
    assert any(f"dead letter {one.id}" in text for text in play.texts("source"))


@pytest.mark.parametrize("kind", ["replaying", "no fail", "late"])
def test_letter_of_a_hosted_spout(run_keeping: Any, store: LetterStore, kind: str) -> None:
    """Whoever gives up, at once or later, the letter has the original values."""
    spout, attempts = {
        "replaying": (IteratorSpout(["good", "bad"], "text string"), 3),
        "no fail": (NoFail(["good", "bad"]), 1),
        "late": (LateGivingUp(), 1),
    }[kind]
    with run_keeping(wired(spout, Picky()), AT_ONCE) as play:
        statistics = play.drain()
    assert (statistics.dead_letters, statistics.given_up, statistics.left_failed) == (1, 1, 0)
    letter = only(store)
    assert letter.values == ("bad",)
    assert (letter.attempts, letter.failure.attempt) == (attempts, attempts)
    assert letter.failure.reason is ss.Reason.ERROR
    assert letter.replayable


def test_letter_of_a_message_that_cannot_be_sent(run_keeping: Any, store: LetterStore) -> None:
    """What does not fit its declared type is kept as it was emitted."""
    with run_keeping(wired(IteratorSpout(["good", 17], "text string"), Picky())) as play:
        assert play.drain().dead_letters == 1
    assert only(store).values == (17,)
    assert "source/default" in only(store).failure.message


def test_replay_goes_through_the_topology(
    run_keeping: Any, store: LetterStore, tmp_path: Path
) -> None:
    """A request made between two runs is done by the second: acked, and the letters are gone."""
    path, cure = tmp_path / "a.txt", tmp_path / "cure"
    path.write_text("good\n" + "".join(f"bad {n}\n" for n in range(5)))
    topology = wired(LinesSpout(path), Picky(cure))
    with run_keeping(topology, AT_ONCE) as play:
        play.drain()
    ask(store)
    cure.touch()
    with run_keeping(topology, AT_ONCE) as play:
        statistics = play.drain()
        assert (statistics.replayed, statistics.acked, statistics.pending) == (5, 5, 0)
        assert sorted(play.emitted("picky")) == [(f"bad {n}",) for n in range(5)]
    assert list(store.letters()) == []
    assert RequestBox(store).names() == []


@pytest.mark.parametrize("spout", [IteratorSpout(["bad"]), Direct()], ids=["hosted", "direct"])
def test_replay_while_it_runs(
    run_keeping: Any, store: LetterStore, tmp_path: Path, spout: ss.Spout
) -> None:
    """A running topology takes a request up by itself; a direct message goes to its task."""
    cure = tmp_path / "cure"
    with run_keeping(wired(spout, Picky(cure)), AT_ONCE) as play:
        play.drain()
        ask(store)
        cure.touch()
        play.pass_time(lambda: play.statistics().replayed == 1)
        assert play.settle().replayed == 1  # what was tapped comes after the verdict
        assert list(store.letters()) == []
        assert play.emitted("picky") == [("bad",)]
        if isinstance(spout, Direct):
            assert play.by_task("picky") == {play_task(play): [("bad",)]}


def play_task(play: Any) -> int:
    runner = getattr(play, "runner", None) or play.run
    last: int = runner.plan.tasks["picky"][-1]
    return last


def test_replay_that_fails_becomes_a_letter_again(run_keeping: Any, store: LetterStore) -> None:
    """It follows the retry policy; attempts add up, the first time stays, the request is done."""
    topology = wired(NoFail(["bad"]), Picky())
    with run_keeping(topology, AT_ONCE) as play:
        play.drain()
        before = only(store)
    ask(store)
    with run_keeping(wired(NoFail([]), Picky()), AT_ONCE) as play:
        statistics = play.drain()
        assert (statistics.failed, statistics.retried, statistics.replayed) == (3, 2, 0)
        assert (statistics.given_up, statistics.dead_letters) == (1, 1)
    after = only(store)
    assert (after.id, after.values, after.first_time) == (before.id, ("bad",), before.first_time)
    assert (before.attempts, after.attempts, after.replays) == (1, 4, 1)
    assert after.last_time >= before.last_time
    assert RequestBox(store).names() == []


def test_sinks_of_the_topology_and_of_one_spout(run_keeping: Any, store: LetterStore) -> None:
    """A spout may have a sink of its own, or none at all; sinks never travel to the workers."""
    common, own = Mailbox(), Mailbox()
    builder = ss.TopologyBuilder()
    mine = builder.set_spout("mine", NoFail(["bad mine"]))
    mine.add_configuration("dead_letter_sink", own)
    builder.set_spout("off", NoFail(["bad off"])).add_configuration("dead_letters", "off")
    builder.set_spout("other", NoFail(["bad other"])).add_configuration("max_retries", 3)
    bolt = builder.set_bolt("picky", Picky())
    bolt.shuffle_grouping("mine").shuffle_grouping("other").shuffle_grouping("off")
    with run_keeping(builder.create_topology(), {"dead_letter_sink": common}) as play:
        statistics = play.drain()
    assert (statistics.given_up, statistics.dead_letters) == (3, 2)
    assert [letter.values for letter in own.letters] == [("bad mine",)]
    assert [letter.values for letter in common.letters] == [("bad other",)]
    assert list(store.letters()) == []


@pytest.mark.spark
def test_poison_is_a_letter_with_its_payload(
    run_on_spark: Any, store: LetterStore, tmp_path: Path
) -> None:
    """A message that ends its process is isolated, and read for its letter in another one."""
    path = tmp_path / "a.txt"
    path.write_text("good\nfine\npoison\nwell\n")
    topology = wired(LinesSpout(path), Deadly())
    with run_on_spark(topology, AT_ONCE, checkpoint=tmp_path / "checkpoint") as play:
        statistics = play.drain()
        assert statistics.acked == 3
    letter = only(store)
    assert letter.failure.reason is ss.Reason.LOST
    assert letter.payload == {"sentence": "poison"}
    assert "ended every process" in letter.failure.message


def test_ten_thousand_messages_with_some_bad_ones(run_keeping: Any, store: LetterStore) -> None:
    """1 % fail once and 0.1 % always: exactly the latter are letters, all others are acked."""
    always = [n for n in range(10_000) if n % 1_000 == 500]
    topology = wired(IteratorSpout(range(10_000), "n long"), Enrich())
    config = {"retry_backoff_secs": 0.1, "max_retries": 3}
    with run_keeping(topology, config) as play:
        if hasattr(play, "clock"):
            for _ in range(5):
                play.settle()
                play.clock.advance(1)
        statistics = play.drain()
    assert (statistics.acked, statistics.given_up) == (10_000 - len(always), len(always))
    assert statistics.failures == {"error": 100 + 4 * len(always)}
    letters = list(store.letters())
    assert sorted(values_of(letter)[0] for letter in letters) == always
    assert sorted(letter.msg_id for letter in letters) == always
    for letter in letters:
        assert (letter.attempts, letter.failure.reason) == (4, ss.Reason.ERROR)
        assert letter.failure.message == f"ValueError: {values_of(letter)[0]} has no customer"
        assert letter.failure.component == "picky"


# --- what is enough to show in this process ----------------------------------------------------


def test_expired_and_failed_messages_of_a_log(run_locally: Any) -> None:
    """What the source no longer has is a letter at once; the spout hears how each one ended."""
    log = Log(["good", "expired", "empty", "bad"])
    files = MemoryFiles()
    with run_locally(wired(log, Picky()), AT_ONCE, files=files) as play:
        statistics = play.drain()
        (task,) = play.runner.coordinator.partitioned.values()
        assert task.spout.done == [
            ("ack", [(0, 1), (2, 3)]),
            ("expired", [(1, 2)]),
            ("error", [(0, 1)]),
        ]
    assert statistics.failures == {"expired": 1, "error": 3}
    expired, bad = sorted(LetterStore(files).letters(), key=lambda one: one.attempts)
    assert (expired.failure.reason, expired.attempts) == (ss.Reason.EXPIRED, 1)
    assert (expired.values, expired.replayable) == (None, False)
    assert "no longer has" in expired.note
    assert (bad.values, source_of(bad)["position"], bad.attempts) == (("bad",), 3, 3)


def test_source_that_is_gone_leaves_coordinates(run_locally: Any, tmp_path: Path) -> None:
    """If the payload cannot be read any more, the letter says so and has everything else."""
    files, gone = MemoryFiles(), tmp_path / "gone"
    config = {"retry_backoff_secs": 10, "max_retries": 1}
    with run_locally(wired(Vanishing(gone), Picky()), config, files=files) as play:
        play.settle()
        gone.touch()
        play.clock.advance(11)
        play.settle()
    letter = only(LetterStore(files))
    assert (letter.values, source_of(letter)["position"], letter.attempts) == (None, 1, 2)
    assert "could not be read: FileNotFoundError: the log is gone" in letter.note


def test_lines_that_were_cut_off_have_expired(run_locally: Any, tmp_path: Path) -> None:
    """Of a file cut short the lines that are left are read, the others are letters at once."""
    path, files = tmp_path / "a.txt", MemoryFiles()
    path.write_text("bad 1\nbad 2\nbad 3\n")
    config = {"retry_backoff_secs": 10, "max_retries": 1}
    with run_locally(wired(LinesSpout(path), Picky()), config, files=files) as play:
        play.settle()
        path.write_text("bad 1\nbad")
        play.clock.advance(11)
        statistics = play.settle()
    assert statistics.failures == {"error": 4, "expired": 2}
    found = {
        one.msg_id[1]: (one.failure.reason.value, one.values)
        for one in LetterStore(files).letters()
    }
    assert found == {1: ("error", ("bad 1",)), 2: ("expired", None), 3: ("expired", None)}


def test_times_and_attempts_of_a_message_retried_often(run_locally: Any) -> None:
    """First and last time are those of the clock, whatever lies between."""
    files = MemoryFiles()
    config = {"retry_backoff_secs": 100, "retry_backoff_max_secs": 100, "max_retries": 20}
    spout = IteratorSpout(["bad"], "text string")
    with run_locally(wired(spout, Picky()), config, files=files) as play:
        started = play.clock.wall()
        for _ in range(25):
            play.settle()
            play.clock.advance(100)
    letter = only(LetterStore(files))
    assert (letter.attempts, letter.first_time, letter.last_time) == (21, started, started + 2000)


def test_replaying_spout_waits_by_the_runners_clock(run_locally: Any) -> None:
    """Its backoff is the clock's, so that a test can advance it."""
    spout = IteratorSpout(["bad"], "text string")
    with run_locally(wired(spout, Picky()), {"retry_backoff_secs": 60}) as play:
        assert play.settle().failed == 1
        play.clock.advance(44)
        assert play.settle().failed == 1
        play.clock.advance(16)
        assert play.settle().failed == 2


def test_retry_settings_per_component(run_locally: Any, tmp_path: Path) -> None:
    """Each spout has its own limit and waits."""
    (tmp_path / "a.txt").write_text("bad\n")
    for spout in (LinesSpout(tmp_path / "a.txt"), IteratorSpout(["bad"], "text string")):
        settings: dict[str, Any] = {
            "max_retries": 1,
            "retry_backoff_secs": 5,
            "retry_backoff_max_secs": 5,
        }
        topology = wired(spout, Picky(), **settings)
        with run_locally(topology, {"max_retries": 9, "retry_backoff_secs": 500}) as play:
            assert play.settle().failed == 1
            play.clock.advance(5)
            assert play.settle().dead_letters == 1


def test_rate_of_a_replay(run_locally: Any) -> None:
    """Letters go out at the asked rate, by the clock; the run is not drained before the last."""
    files = MemoryFiles()
    store = LetterStore(files)
    with run_locally(wired(NoFail([f"bad {n}" for n in range(30)]), Picky()), files=files) as play:
        play.drain()
    ask(store, rate=2.0)
    with run_locally(wired(NoFail([]), Picky("/")), files=files) as play:
        for second in range(14):
            play.settle()
            assert play.statistics().acked == 1 + 2 * second
            assert not play.runner.coordinator.drained
            play.clock.advance(1)
        play.settle()
        play.clock.advance(1)
        assert play.drain().acked == 30


@pytest.mark.parametrize("limit", [1, 4])
def test_replays_take_part_in_the_limit_of_a_batch(
    run_locally: Any, tmp_path: Path, limit: int
) -> None:
    """Those that are tried again, too; they and the messages of spouts take turns."""
    files, cure, good = MemoryFiles(), tmp_path / "cure", [f"good {n}" for n in range(60)]
    with run_locally(wired(NoFail([f"bad {n}" for n in range(30)]), Picky()), files=files) as play:
        play.drain()
    ask(LetterStore(files))
    config = {"batch_max_messages": limit, "retry_backoff_secs": 5}
    with run_locally(wired(NoFail(good), Picky(cure)), config, files=files) as play:
        for _ in range(3):  # verdicts are given with the next plan
            play.runner.step()
        begun = play.statistics()
        assert begun.acked, "a spout has its turn"
        assert begun.failed, "and so have replays"
        sizes = []
        while not play.runner.coordinator.drained:
            if not play.runner.step():
                cure.touch()
                play.clock.advance(5)
            sizes.append(play.statistics().batch_messages)
        statistics = play.settle()
        assert max(sizes) == limit
        assert (statistics.replayed, statistics.acked, statistics.failed) == (30, 90, 30)


def test_replay_of_what_no_longer_fits_stays(
    run_locally: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Other fields, no such spout, no such stream: an error line each, and the letter stays."""
    files = MemoryFiles()
    store = LetterStore(files)
    with run_locally(wired(NoFail(["bad"]), Picky()), files=files) as play:
        play.drain()
    letter = only(store)
    for spout, id_, words in (
        (IteratorSpout([], "other string"), "source", "other fields now: other"),
        (Log([]), "elsewhere", "no spout 'source' any more"),
        (Direct(), "source", "no stream 'default' any more"),
    ):
        ask(store)
        topology = wired(spout, Picky("/"), id_=id_)
        with run_locally(topology, files=files) as play:
            play.settle()
        assert words in caplog.text
        assert RequestBox(store).names() == []
        assert only(store) == letter


class Odd:
    """Can be pickled, not written."""

    def __repr__(self) -> str:
        return "bad odd"


ODD = Odd()


def test_values_that_cannot_be_written(run_locally: Any, caplog: pytest.LogCaptureFixture) -> None:
    """They are kept as text, and a replay says that it cannot be."""
    files = MemoryFiles()
    store = LetterStore(files)
    with run_locally(wired(NoFail([ODD]), Picky()), files=files) as play:
        play.drain()
    assert not only(store).replayable
    assert repr(only(store).values) == "(bad odd,)"
    ask(store)
    with run_locally(wired(NoFail([]), Picky()), files=files) as play:
        play.drain()
    assert "cannot be replayed" in caplog.text
    assert only(store).replays == 0


@pytest.mark.parametrize("spout", [pytest.param("partitioned", marks=pytest.mark.slow), "hosted"])
def test_bolt_that_never_acks_for_ten_minutes(
    tmp_path: Path,
    spout: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every message times out as often as the policy says, then is a letter; memory is flat."""
    # The last ten thousand failed messages are kept for people; ten minutes fail fewer.
    monkeypatch.setattr("sparkstorm.batches.messages.chronicle._MOST_MESSAGES", 150)
    caplog.set_level(logging.CRITICAL, logger=LINES)  # pytest would keep every line in memory
    (tmp_path / "a.txt").write_text("a line that nobody ever acks\n" * 100_000)
    endless = IteratorSpout(range(100_000), "text long")
    pending, retries = 60, 3
    builder = ss.TopologyBuilder()
    source = LinesSpout(tmp_path / "a.txt") if spout == "partitioned" else endless
    builder.set_spout("source", source).set_max_spout_pending(pending)
    builder.set_bolt("holder", NeverAcks()).shuffle_grouping("source")
    config = ss.Config(message_timeout_secs=10, retry_backoff_secs=1, max_retries=retries)
    files, clock, used = LocalFiles(tmp_path / "files"), ManualClock(), array("q", [0] * 60)
    runner = LocalRunner(builder.create_topology(), config=config, clock=clock, files=files)
    with runner:
        tracemalloc.start()
        for second in range(600):
            runner.run_until_idle()
            clock.advance(1)
            if second % 10 == 9:
                gc.collect()
                used[second // 10] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        statistics = runner.statistics()
    letters = list(LetterStore(files).letters())
    assert len(letters) == statistics.dead_letters > 8 * pending
    assert {(one.attempts, one.failure.reason) for one in letters} == {
        (retries + 1, ss.Reason.TIMEOUT)
    }
    assert {one.last_time - one.first_time >= 40 for one in letters} == {True}
    assert statistics.failures == {"timeout": statistics.failed}
    assert (statistics.acked, statistics.pending) == (0, pending)
    # The windows of the metrics fill up in the first ten minutes: 100 kB for two components.
    assert max(used[36:]) < 1.1 * max(used[6:30]) + 120_000


def test_people_are_told_once_of_messages_with_one_cause(run_locally: Any) -> None:
    """A line for each cause, with the first message; also where nobody keeps a letter."""
    topology = wired(NoFail(["bad", "good", "bad", "bad luck", "bad"]), Picky())
    with run_locally(topology, {"dead_letters": "off"}) as play:
        play.drain()
        told = [text for text in play.texts("source") if "given up" in text]
    assert len(told) == 2
    assert told[0].startswith("messages 0 and 2 more were given up after 1 try: error in picky")
    assert told[1].startswith("message 3 was given up after 1 try: error in picky")


def test_feeder_that_only_remembers_has_no_letters(run_locally: Any) -> None:
    """A spout that overrides ``fail`` and gives nothing up decides for itself."""
    feeder, files = FeederSpout("text string"), MemoryFiles()
    with run_locally(wired(feeder, Picky()), files=files) as play:
        feeder.feed(["bad"], msg_id=1)
        play.settle()
    assert feeder.failed == [1]
    assert list(LetterStore(files).letters()) == []
