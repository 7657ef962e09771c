"""Transactions at their edges: what a run that goes well never sees."""

from collections.abc import Sequence
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.delivery.files import MemoryFiles
from sparkstorm.errors import BatchError
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
        pytest.raises(BatchError, match=r"batch 0 was decided on as it was.*1 messages fail now"),
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
