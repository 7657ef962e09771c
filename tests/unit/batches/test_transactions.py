"""Transactions at their edges: what a run that goes well never sees."""

from collections.abc import Sequence
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.batches.journal import Journal
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.errors import CheckpointError
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock, MemorySink

ROWS = [[n] for n in range(8)]
ONCE = ss.Config(
    processing_guarantee="exactly-once",
    batch_min_messages=4,
    batch_max_messages=4,
    max_retries=1,
    retry_backoff_secs=0,
)


class Shaky(ss.BasicBolt):
    """Fails what it is told to fail."""

    outputs = "n long"
    transient = ("failing",)
    failing: frozenset[int] = frozenset()

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] in Shaky.failing:
            raise ValueError("shaken")
        collector.emit([tup["n"]])


class Door(ss.CommitterBolt):
    """Cannot be opened, or not be closed."""

    def __init__(self, *, opens: bool) -> None:
        self.opens = opens

    def connect(self, config: ss.Config) -> None:
        if not self.opens:
            raise ConnectionError("nobody is at home")

    def disconnect(self) -> None:
        raise OSError("it jams")

    def commit(self, transaction: ss.Transaction, staged: Sequence[Any]) -> None:
        """Do nothing."""


def runner(sink: ss.CommitterBolt, files: MemoryFiles | None = None, **options: Any) -> LocalRunner:
    """Numbers, shaken, into a sink."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    builder.set_bolt("shaky", Shaky()).shuffle_grouping("numbers")
    builder.set_bolt("sink", sink).shuffle_grouping("shaky")
    topology = builder.create_topology()
    return LocalRunner(topology, config=ONCE, clock=ManualClock(), files=files, **options)


@pytest.fixture
def shaking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say which numbers fail from now on."""
    return lambda *numbers: monkeypatch.setattr(Shaky, "failing", frozenset(numbers))


def test_what_was_decided_on_cannot_be_changed_any_more(shaking: Any) -> None:
    """The sink has it: a message of it that fails for ever afterwards ends the run."""
    sink, files = MemorySink(), MemoryFiles()
    first = runner(sink, files)
    first.__enter__()
    first.ask_spouts()
    assert first.plan_batch()
    assert first.finish(first.run_job())
    first.apply()  # and here it dies
    assert len(sink.rows) == 4
    shaking(2)
    second = runner(sink, files)
    with (
        pytest.raises(CheckpointError, match=r"batch 0 was decided on.*1 failed now.*Mend that"),
        second,
    ):
        second.run_until_idle()
    shaking()
    with runner(sink, files) as third:
        third.run_until_idle()
    assert sorted(sink.rows) == [(n,) for n in range(8)]


def test_what_is_staged_is_not_shown_as_tapped() -> None:
    """It comes out in the driver in the same way, but only tapped streams are anybody's."""
    shown: list[str] = []
    sink = MemorySink()
    with runner(
        sink, taps=["shaky"], on_tap=lambda key, task, rows: shown.extend([str(key)] * len(rows))
    ) as play:
        play.run_until_idle()
    assert shown == ["shaky/default"] * 8
    assert len(sink.rows) == 8


def test_a_committer_that_cannot_connect_ends_the_run_at_once() -> None:
    """Before anything is read."""
    with pytest.raises(ss.CommitError, match="'sink' cannot connect: ConnectionError: nobody"):
        runner(Door(opens=False)).__enter__()


def test_a_committer_that_cannot_disconnect_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Everything is applied by then."""
    with runner(Door(opens=True)) as play:
        play.run_until_idle()
    assert "'sink' could not disconnect: it jams" in caplog.text


# --- what a review found -------------------------------------------------------------------------


class Pairs(ss.Bolt):
    """Acks two tuples when the second one comes."""

    transient = ("waiting",)

    def prepare(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.waiting: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        self.waiting.append(tup)
        if len(self.waiting) == 2:
            for one in self.waiting:
                self.collector.ack(one)
            self.waiting = []

    def finish_batch(self) -> None:
        self.waiting = []


class FailsAtFirst(ss.BasicBolt):
    """Fails one number when it is tried first."""

    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 2 and tup.attempt == 1:
            raise ValueError("not yet")
        collector.emit([tup["n"]])


def test_a_tuple_that_waits_for_a_failed_one_is_rolled_back_with_it() -> None:
    """It is open only because the other one did not come."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    builder.set_bolt("first", FailsAtFirst()).shuffle_grouping("numbers")
    builder.set_bolt("pairs", Pairs()).global_grouping("first")
    with LocalRunner(builder.create_topology(), config=ONCE, clock=ManualClock()) as play:
        statistics = play.run_until_idle()
    assert (statistics.acked, statistics.rollbacks) == (8, 1)


def test_a_decided_batch_goes_on_with_the_try_that_was_whole() -> None:
    """The bolts may look at it: what failed at first did so before the decision."""
    sink, files = MemorySink(), MemoryFiles()
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    builder.set_bolt("first", FailsAtFirst()).shuffle_grouping("numbers")
    builder.set_bolt("sink", sink).shuffle_grouping("first")
    topology = builder.create_topology()
    first = LocalRunner(topology, config=ONCE, clock=ManualClock(), files=files)
    first.__enter__()
    assert first.plan_batch()
    assert not first.finish(first.run_job())
    first.roll_back()
    assert first.finish(first.run_job())  # and here it dies
    with LocalRunner(topology, config=ONCE, clock=ManualClock(), files=files) as second:
        statistics = second.run_until_idle()
    assert (statistics.acked, statistics.rollbacks) == (8, 0)
    assert sorted(sink.rows) == [(n,) for n in range(8)]


class Away(ss.PartitionedSpout):
    """A source that does not answer the first times that it is read."""

    outputs = "n long"
    replayable = True
    left = 0

    def __init__(self) -> None:
        self.planned = False

    def plan(self, limit: int) -> list[ss.Split]:
        planned, self.planned = self.planned, True
        return [] if planned else [ss.Split(count=4)]

    def read(self, split: ss.Split) -> list[list[int]]:
        if Away.left:
            Away.left -= 1
            raise ss.SpoutConnectionError("nobody answers")
        return [[0], [1], [2], [3]]

    def exhausted(self) -> bool:
        return self.planned


def into(sink: ss.CommitterBolt, spout: ss.PartitionedSpout, **settings: Any) -> ss.Topology:
    """A spout, shaken, into a sink."""
    builder = ss.TopologyBuilder()
    declared = builder.set_spout("numbers", spout)
    for key, value in settings.items():
        declared.add_configuration(key, value)
    builder.set_bolt("shaky", FailsAtSecond()).shuffle_grouping("numbers")
    builder.set_bolt("sink", sink).shuffle_grouping("shaky")
    return builder.create_topology()


class FailsAtSecond(ss.BasicBolt):
    """Fails one number once, when its batch runs for the fifth time."""

    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 2 and tup.attempt == 5:
            raise ValueError("not yet")
        collector.emit([tup["n"]])


def test_a_source_that_was_away_has_used_up_no_tries() -> None:
    """With one retry: four times nobody answers, then a message fails, once."""
    Away.left, sink = 4, MemorySink()
    with LocalRunner(into(sink, Away()), config=ONCE, clock=ManualClock()) as play:
        statistics = play.run_until_idle()
    assert (statistics.acked, statistics.given_up, statistics.rollbacks) == (4, 0, 5)
    assert sorted(sink.rows) == [(n,) for n in range(4)]


def test_the_retries_of_a_spout_are_its_own(shaking: Any) -> None:
    """As with at-least-once: a component may override them."""
    shaking(2)
    sink = MemorySink()
    builder = ss.TopologyBuilder()
    spout = builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    spout.add_configuration("max_retries", 0)
    builder.set_bolt("shaky", Shaky()).shuffle_grouping("numbers")
    builder.set_bolt("sink", sink).shuffle_grouping("shaky")
    with LocalRunner(builder.create_topology(), config=ONCE, clock=ManualClock()) as play:
        statistics = play.run_until_idle()
    assert (statistics.acked, statistics.given_up, statistics.rollbacks) == (7, 1, 1)


def test_a_stop_during_a_rollback_costs_no_tries(shaking: Any) -> None:
    """The next driver begins where this one did."""
    shaking(2)
    sink, files = MemorySink(), MemoryFiles()
    first = runner(sink, files)
    first.__enter__()
    first.ask_spouts()
    assert first.plan_batch()
    assert not first.finish(first.run_job())
    first.__exit__(None, None, None)
    shaking(1)
    second = runner(sink, files)
    second.__enter__()
    second.ask_spouts()
    assert second.plan_batch()
    assert not second.finish(second.run_job())
    second.roll_back()
    shaking()
    assert second.finish(second.run_job())
    second.apply()
    second.commit()
    assert second.run_until_idle().given_up == 0
    assert sorted(sink.rows) == [(n,) for n in range(8)]


def test_a_committer_that_is_gone_is_missed(shaking: Any) -> None:
    """What it may not have applied must not be forgotten."""
    files = MemoryFiles()
    first = runner(MemorySink(), files)
    first.__enter__()
    first.ask_spouts()
    assert first.plan_batch()
    assert first.finish(first.run_job())  # and here it dies
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    builder.set_bolt("shaky", Shaky()).shuffle_grouping("numbers")
    other = builder.create_topology()
    for config in (ONCE, ONCE.override({"processing_guarantee": "at-least-once"})):
        again = LocalRunner(other, config=config, clock=ManualClock(), files=files)
        with pytest.raises(CheckpointError, match="decided on with the committer 'sink'"), again:
            again.run_until_idle()


class Taker(ss.CommitterBolt):
    """Takes out what it is given while it works, and fails the first time."""

    transient = ("done", "failed")

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.failed = False

    def commit(self, transaction: ss.Transaction, staged: Any) -> None:
        taken = [staged.pop() for _ in range(len(staged))]
        if not self.failed:
            self.failed = True
            raise OSError("again")
        self.done += taken


def test_a_commit_is_repeated_with_the_same_values() -> None:
    """Also if the first one has taken them out of its list."""
    with runner(Taker()) as play:
        play.run_until_idle()
        assert play.coordinator._transactions is not None
        taker: Any = play.coordinator._transactions._committers["sink"]
    assert sorted(taker.done) == [(n,) for n in range(8)]


def test_a_decision_that_could_not_be_written_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full: the batch is decided on anew."""
    write, full = Journal.write_decision, [True]

    def fails_once(journal: Journal, number: int, data: bytes) -> None:
        if full.pop() if full else False:
            raise OSError("no space left")
        write(journal, number, data)

    monkeypatch.setattr(Journal, "write_decision", fails_once)
    sink = MemorySink()
    with runner(sink) as play:
        play.ask_spouts()
        assert play.plan_batch()
        with pytest.raises(OSError, match="no space left"):
            play.finish(play.run_job())
        play.roll_back()
        assert play.coordinator._batches[0].decision is None
        play.run_until_idle()
    assert sorted(sink.rows) == [(n,) for n in range(8)]


class DeathError(BaseException):
    """The driver dies; nothing may catch it."""


class Deadly(ss.BasicBolt):
    """Takes the driver with it."""

    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 1:
            raise DeathError
        collector.emit([tup["n"]])


def live(bolt: ss.BasicBolt, files: MemoryFiles, config: ss.Config) -> ss.Statistics:
    """One life of a driver."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout(ROWS, "n long"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    runner = LocalRunner(builder.create_topology(), config=config, clock=ManualClock(), files=files)
    runner.__enter__()
    statistics = runner.run_until_idle()
    runner.__exit__(None, None, None)
    return statistics


BOTH = pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])


@pytest.mark.sweep
@BOTH
def test_a_message_that_kills_the_driver_is_given_up(guarantee: str) -> None:
    """After all its tries alone; a batch that nobody has decided on may be run in pieces."""
    files = MemoryFiles()
    config = ONCE.override({"processing_guarantee": guarantee, "max_retries": 2})
    for _ in range(20):
        try:
            statistics = live(Deadly(), files, config)
            break
        except DeathError:
            continue
    assert statistics.given_up == 1
    (letter,) = LetterStore(files).letters()
    assert (letter.attempts, letter.failure.attempt, letter.failure.reason) == (3, 3, "lost")


class Bad(ss.BasicBolt):
    """Fails one number, always."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == 1:
            raise ValueError("always")


@BOTH
def test_a_replay_that_was_planned_by_a_dead_driver_is_taken_up_by_either_kind(
    guarantee: str,
) -> None:
    """The guarantee may change between two runs on a checkpoint."""
    files, once = MemoryFiles(), ONCE.override({"max_retries": 0})
    live(Bad(), files, once)
    store = LetterStore(files)
    RequestBox(store).ask(store.letters(), wall=0.0)
    with pytest.raises(DeathError):
        live(Deadly(), files, once)
    live(Bad(), files, once.override({"processing_guarantee": guarantee}))
    (letter,) = store.letters()
    assert letter.replays == 1
    assert RequestBox(store).names() == []
