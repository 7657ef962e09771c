"""Messages that are left out of a batch for the sake of its poisons: they have not run."""

from collections.abc import Iterable
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.drive import BatchDriver, JobError, Step, obey
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.local.runner import LocalRunner
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import FeederSpout, LogSpout, ManualClock

TOTAL = 12
DEADLY = {1, 4, 7, 10}
MOST = 2
"""How many poisons are looked for in one batch."""


class Killed(BaseException):
    """Stands for the end of a process; no exception, so that nobody catches it."""


def numbers() -> LogSpout:
    """Numbers from zero, in one split."""
    return LogSpout([[n] for n in range(TOTAL)], "n int", split_rows=TOTAL)


class Deadly(ss.BasicBolt):
    """Is killed by some numbers."""

    def __init__(self, deadly: Iterable[int] = DEADLY) -> None:
        self.deadly = frozenset(deadly)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] in self.deadly:
            raise Killed


class Queue(ss.Spout):
    """The numbers one by one; without a ``fail`` of its own, so what fails is given up at once."""

    outputs = "n int"

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.collector = collector
        self.left = list(range(TOTAL))

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop(0)
            self.collector.emit([number], msg_id=number)

    def exhausted(self) -> bool:
        return not self.left


class Play:
    """A topology whose batches are searched for poisons, as on Spark."""

    def __init__(
        self,
        spout: Any,
        files: MemoryFiles | None = None,
        deadly: Iterable[int] = DEADLY,
        **config: Any,
    ) -> None:
        builder = ss.TopologyBuilder()
        builder.set_spout("numbers", spout)
        builder.set_bolt("bolt", Deadly(deadly)).shuffle_grouping("numbers")
        self.files = files = files or MemoryFiles()
        self.letters = LetterStore(files)
        self.runner = LocalRunner(
            builder.create_topology(),
            config=ss.Config(**{"max_retries": 0, "retry_backoff_secs": 0, **config}),
            partitions=1,
            clock=ManualClock(),
            files=files,
        )

    def run(self, batches: int = 10) -> ss.Statistics:
        """Run until it is drained."""
        with self.runner as runner:
            for _ in range(batches):
                runner.ask_spouts()
                if runner.plan_batch():
                    self.one_batch()
                elif runner.coordinator.drained:
                    break
            return runner.statistics()

    def one_batch(self) -> None:
        """Run a planned batch; without its poisons, if there are any."""
        runner = self.runner
        runner.drive()
        driver = BatchDriver(runner.coordinator, runner.plan, ManualClock(), max_poisons=MOST)
        obey(driver.drive(runner.number), self._perform)
        runner.commit()

    def _perform(self, step: Step) -> JobResult:
        try:
            return self.runner.perform(step)
        except Killed as killed:
            raise JobError("it kills") from killed


@pytest.mark.parametrize(
    ("spout", "guarantee"),
    [
        (numbers(), "at-least-once"),
        (numbers(), "exactly-once"),
        (IteratorSpout(range(TOTAL), "n int"), "at-least-once"),
        (Queue(), "at-least-once"),
    ],
)
def test_no_good_message_is_given_up_behind_many_poisons(spout: Any, guarantee: str) -> None:
    """No message has a second try, and those behind the last poison found have had none."""
    play = Play(spout, processing_guarantee=guarantee, dead_letters="off")
    statistics = play.run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - len(DEADLY), len(DEADLY))


@pytest.mark.sweep
def test_a_driver_that_dies_after_the_search_leaves_word_of_it() -> None:
    """The next one gives up the poisons that were found, and nothing that stood behind them."""
    before = Play(numbers())
    before.runner.__enter__()
    assert before.runner.plan_batch()
    before.one_batch()  # its verdicts come with the next question
    statistics = Play(numbers(), before.files).run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - len(DEADLY), len(DEADLY))
    found = [letter.failure.message for letter in before.letters.letters()]
    alone = "alone in its batch, it ended every process that worked on it"
    assert found == [alone] * len(DEADLY)


@pytest.mark.parametrize(("left_out", "failed"), [(1, []), (2, [0, 1])])
def test_what_is_left_out_is_charged_only_if_there_was_no_progress(
    left_out: int, failed: list[int]
) -> None:
    """A batch that goes through without any message, and finds no poison, would come for ever."""
    feeder = FeederSpout("n int")
    play = Play(feeder)
    with play.runner as runner:
        feeder.feed([0], msg_id=0)
        feeder.feed([0], msg_id=1)
        runner.ask_spouts()
        assert runner.plan_batch()
        [span] = runner.coordinator.info(runner.number).ranges
        runner.coordinator.leave_out(runner.number, [RootRange(span.first, left_out)], {})
        assert runner.finish(runner.run_job())
        runner.commit()
        runner.run_until_idle()
    assert (feeder.failed, sorted(feeder.acked)) == (failed, [] if failed else [0, 1])
    assert all(failure.counted for failure in feeder.failures)


def test_a_letter_that_is_left_out_of_its_replay_is_replayed_all_the_same() -> None:
    """The fourth of four letters stands behind as many poisons as are looked for."""
    before = Play(Queue())
    before.run()
    assert {letter.attempts for letter in before.letters.letters()} == {1}
    RequestBox(before.letters).ask(before.letters.letters(), wall=0.0)
    feeder = FeederSpout("n int")
    feeder.end()
    after = Play(feeder, before.files, deadly={4, 7})
    assert after.run().replayed == 2
    assert {letter.values: letter.replays for letter in after.letters.letters()} == {
        (4,): 1,
        (7,): 1,
    }
