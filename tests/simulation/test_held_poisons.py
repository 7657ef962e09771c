"""Messages that kill a later stage while a finished one, which is not run again, holds them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import sparkstorm as ss
from sparkstorm.batches.drive import BatchDriver, JobError, RunBatch, Step, obey
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.local.jobs import Loads
from sparkstorm.local.runner import LocalRunner
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.planning.plan import Plan, Stage, StageKind
from sparkstorm.state.stores import MemoryStore
from sparkstorm.tasks.dispatch import Delivery
from sparkstorm.tasks.worker import StageJob, Worker
from sparkstorm.testing import FeederSpout, LogSpout, ManualClock

TOTAL = 12
ALONE = "alone in its batch, it ended every process that worked on it"
MOST = 2
"""How many poisons are looked for in one batch."""


class Killed(BaseException):
    """Stands for the end of a process; no exception, so that nobody catches it."""


class Hold(ss.StatefulBolt):
    """Holds each number beyond its batch, while a tuple of it goes on; lets it go in the next."""

    outputs = MappingProxyType({"default": "n int", "held": "numbers string"})

    def execute(self, tup: ss.Tuple) -> None:
        if tup.is_tick:
            return
        self.state.tuples("kept").add(self.context.batch, tup)
        self.collector.emit([tup["n"]], anchors=tup)

    def finish_batch(self) -> None:
        kept = self.state.tuples("kept")
        before = [
            tup for key in sorted(kept.keys()) if key < self.context.batch for tup in kept.get(key)
        ]
        if before:
            self.collector.emit([" ".join(str(tup["n"]) for tup in before)], stream="held")
        for tup in before:
            self.collector.ack(tup)


class HoldPairs(Hold):
    """The same, and what goes on is anchored to the number before, too."""

    def execute(self, tup: ss.Tuple) -> None:
        if tup.is_tick:
            return
        kept = self.state.tuples("kept")
        before = kept.get(self.context.batch)
        kept.add(self.context.batch, tup)
        self.collector.emit([tup["n"]], anchors=[*before[-1:], tup])


class Deadly(ss.BasicBolt):
    """Is killed by some numbers."""

    def __init__(self, deadly: Iterable[int]) -> None:
        self.deadly = frozenset(deadly)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] in self.deadly:
            raise Killed


class KeptStages:
    """Runs jobs as Spark does: what finished stages have written is used by the batch's next job.

    A probe runs on a plan of its own, and leaves nothing behind.
    """

    def __init__(self, plan: Plan, disk: dict[str, MemoryStore]) -> None:
        self._plan = plan
        self._worker = Worker(plan)
        self._disk = disk
        self._outputs: dict[int, list[Delivery]] = {}
        self._written: dict[str, MemoryStore] = {}
        self._runs = 0

    def run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        """Run the stages that have not finished yet."""
        if batch.purpose is Purpose.BATCH:
            return JobResult(rows=self._run(batch, loads, self._outputs, self._written))
        return JobResult(rows=self._run(batch, loads, {}, {}))

    def commit(self) -> None:
        """Keep the state that was written."""
        for store in self._written.values():
            store.commit()
        self._disk |= self._written
        self.roll_back()

    def roll_back(self) -> None:
        """Forget what the stages have written."""
        self._outputs, self._written = {}, {}

    def stores(self) -> Mapping[str, MemoryStore]:
        """The committed state."""
        return self._disk

    def close(self) -> None:
        """The process ends."""
        self._worker.cleanup()

    def _run(
        self,
        batch: BatchInfo,
        loads: Loads,
        outputs: dict[int, list[Delivery]],
        written: dict[str, MemoryStore],
    ) -> list[bytes]:
        sent: list[Delivery] = []
        for number, stage in enumerate(self._plan.stages):
            if number not in outputs or stage.kind is StageKind.ACK:
                outputs[number] = self._run_stage(stage, batch, sent, loads, written)
            sent = outputs[number]
        return [data for _, data in sent]

    def _run_stage(
        self,
        stage: Stage,
        batch: BatchInfo,
        packets: list[Delivery],
        loads: Loads,
        written: dict[str, MemoryStore],
    ) -> list[Delivery]:
        self._runs += 1
        job = StageJob(
            worker=self._worker,
            stage=stage,
            partition=0,
            batch=batch,
            attempt=f"{id(self)}.{self._runs}",
            store=lambda name: written.setdefault(name, self._disk.get(name, MemoryStore()).copy()),
        )
        mine = loads.get(0, ()) if stage.kind is StageKind.READ else ()
        return job.run([data for _, data in packets], mine)[0]


class Play:
    """Numbers that are held, and go on to where some kill; searched for as on Spark."""

    def __init__(
        self,
        spout: Any,
        deadly: Iterable[int],
        bolt: Any = Hold,
        files: MemoryFiles | None = None,
        disk: dict[str, MemoryStore] | None = None,
        **config: Any,
    ) -> None:
        builder = ss.TopologyBuilder()
        builder.set_spout("numbers", spout)
        hold = builder.set_bolt("hold", bolt()).global_grouping("numbers")
        hold.add_configuration("tick_tuple_freq_secs", 1)
        builder.set_bolt("deadly", Deadly(deadly)).shuffle_grouping("hold")
        self.files = files or MemoryFiles()
        self.disk = {} if disk is None else disk
        self.clock = ManualClock()
        self.failed_whole = 0
        self.held: list[str] = []
        self.runner = LocalRunner(
            builder.create_topology(),
            config=ss.Config(
                **{"max_retries": 0, "retry_backoff_secs": 0, "batch_max_messages": 100, **config}
            ),
            partitions=1,
            clock=self.clock,
            files=self.files,
            taps=["hold"],
            on_tap=lambda key, _, rows: self.held.extend(
                row[0] for row in rows if key.stream == "held"
            ),
            jobs=lambda plan: KeptStages(plan, self.disk),
        )

    def run(self, batches: int = 10) -> ss.Statistics:
        """Run until it is drained, a second for each batch, so that nothing times out."""
        with self.runner as runner:
            for _ in range(batches):
                self.clock.advance(1.0)
                runner.ask_spouts()
                planned = runner.plan_batch()
                if runner.coordinator.drained:
                    return runner.statistics()
                if planned:
                    self.one_batch()
            raise AssertionError(f"it does not end: {runner.statistics()}")

    def one_batch(self) -> None:
        """Run a planned batch; without its poisons, if there are any."""
        runner = self.runner
        runner.drive()
        driver = BatchDriver(runner.coordinator, runner.plan, self.clock, max_poisons=MOST)
        obey(driver.drive(runner.number), self._perform)
        runner.commit()

    def _perform(self, step: Step) -> JobResult:
        try:
            return self.runner.perform(step)
        except Killed as killed:
            self.failed_whole += isinstance(step, RunBatch) and step.info.excluded == ()
            raise JobError("it kills") from killed


def numbers() -> LogSpout:
    """Numbers from zero, in one split."""
    return LogSpout([[n] for n in range(TOTAL)], "n int", split_rows=TOTAL)


def without(*gone: int) -> str:
    """All numbers but some, as they are let go."""
    return " ".join(str(n) for n in range(TOTAL) if n not in gone)


def test_a_held_poison_is_condemned_with_its_batch() -> None:
    """Its verdict comes with the commit; no time passes, and nobody searches again."""
    play = Play(numbers(), deadly={5})
    statistics = play.run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - 1, 1)
    assert statistics.failures == {"lost": 1}
    [letter] = LetterStore(play.files).letters()
    assert (letter.values, letter.failure.message) == ((5,), ALONE)
    assert play.failed_whole == 2


def test_what_is_held_of_a_condemned_message_is_dropped() -> None:
    """The bolt's task is told in the next batch, before it sees what it holds."""
    play = Play(numbers(), deadly={5})
    play.run()
    assert play.held == [without(5)]


def test_a_hosted_poison_is_condemned_with_its_batch() -> None:
    """Its spout hears of the failure before the next batch, and that it is the last word."""
    feeder = FeederSpout("n int")
    play = Play(feeder, deadly={1})
    for number in range(3):
        feeder.feed([number], msg_id=number)
    feeder.end()
    play.run()
    assert (feeder.failed, sorted(feeder.acked)) == ([1], [0, 2])
    [failure] = feeder.failures
    assert failure.final


def test_what_is_held_behind_the_last_poison_is_charged_with_no_try() -> None:
    """It comes back in the next batch, though each message has one try only."""
    play = Play(numbers(), deadly={1, 4, 7, 10})
    statistics = play.run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - 4, 4)
    assert statistics.failures["lost"] >= 4
    assert play.failed_whole == 4  # a search begins with two


def test_the_next_driver_condemns_a_held_poison_and_drops_it() -> None:
    """The first one dies between the commit and the verdicts."""
    before = Play(numbers(), deadly={5})
    before.runner.__enter__()
    assert before.runner.plan_batch()
    before.one_batch()
    after = Play(numbers(), deadly={5}, files=before.files, disk=before.disk, max_retries=1)
    statistics = after.run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - 1, 1)
    assert [letter.failure.message for letter in LetterStore(after.files).letters()] == [ALONE]
    assert after.held == [without(5)], "held once, by this driver"
    assert after.failed_whole == 0


def test_a_message_whose_tuple_was_left_out_with_a_poison_fails_at_once() -> None:
    """Messages 4 and 5 are held, and one tuple of both goes on: it kills, since it is a 5."""
    play = Play(numbers(), deadly={5}, bolt=HoldPairs, enable_message_timeouts=False, max_retries=1)
    statistics = play.run()
    assert (statistics.acked, statistics.given_up) == (TOTAL - 1, 1)
