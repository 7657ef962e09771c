"""Stories of single faults, told step by step: each could be a way to lose a message."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import sparkstorm as ss
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootRange, Tally
from sparkstorm.batches.job_result import JobResult
from sparkstorm.local.jobs import Loads
from sparkstorm.local.runner import LocalRunner
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.state.stores import MemoryStore
from sparkstorm.tasks.worker import StageJob, Worker
from sparkstorm.testing import Faults, FeederSpout, LogSpout, ManualClock, RequeueSpout, Simulation
from sparkstorm.testing.internal.shared import Shared

ROWS = [["a"], ["b"], ["a"], ["c"]]
ALL = Counter({"a": 2, "b": 1, "c": 1})


class Count(ss.StatefulBolt):
    """Counts words."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple) -> None:
        self.state.put(tup["word"], self.state.get(tup["word"], 0) + 1)
        self.collector.emit([tup["word"]], anchors=tup)
        self.collector.ack(tup)


class Picky(ss.Bolt):
    """Fails what begins with an f."""

    def execute(self, tup: ss.Tuple) -> None:
        if tup["word"].startswith("f"):
            self.collector.fail(tup, "an f")
        else:
            self.collector.ack(tup)


class Twins(ss.Bolt):
    """Makes a good and a bad tuple of each."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit(["good"], anchors=tup)
        self.collector.emit([tup["word"]], anchors=tup)
        self.collector.ack(tup)


# --- crashes of the driver ----------------------------------------------------------------------


def counting(kind: Any) -> Simulation:
    """Four words counted in one batch, in a calm world."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", kind(ROWS, "word string"))
    builder.set_bolt("count", Count(), 2).fields_grouping("words", "word")
    return Simulation(builder.create_topology(), faults=Faults.none())


def until_planned(simulation: Simulation) -> None:
    """Plan the batch and write the plan."""
    simulation.runner.ask_spouts()
    assert simulation.runner.plan_batch()


def until_run(simulation: Simulation) -> None:
    """Also run its job, so that tasks have written state."""
    until_planned(simulation)
    simulation.runner.run_job()


def until_finished(simulation: Simulation) -> None:
    """Also write its outcome."""
    until_planned(simulation)
    simulation.runner.finish(simulation.runner.run_job())


def until_committed(simulation: Simulation) -> None:
    """Also commit it; no verdict is given."""
    until_finished(simulation)
    simulation.runner.commit()


@pytest.mark.parametrize("kind", [RequeueSpout, LogSpout])
@pytest.mark.parametrize("until", [until_planned, until_run, until_finished])
def test_crash_before_the_commit(kind: Any, until: Callable[[Simulation], None]) -> None:
    """Between plan and batch, between batch and commit: counted once, acked once, nothing lost."""
    simulation = counting(kind)
    until(simulation)
    assert simulation.runner.state("count") == {}
    simulation.crash()
    outcome = simulation.run(turns=0)
    assert Counter(outcome.state["count"]) == ALL
    assert outcome.acked == {("words", n): 1 for n in range(4)}


@pytest.mark.parametrize(("kind", "times"), [(RequeueSpout, 2), (LogSpout, 1)])
def test_crash_between_commit_and_verdict(kind: Any, times: int) -> None:
    """A log hears the verdict of what is committed; a queue has to give it out again."""
    simulation = counting(kind)
    until_committed(simulation)
    assert Counter(simulation.runner.state("count")) == ALL
    simulation.crash()
    outcome = simulation.run(turns=0)
    assert outcome.acked == {("words", n): 1 for n in range(4)}
    assert outcome.failures == {}
    assert Counter(outcome.state["count"]) == Counter({w: n * times for w, n in ALL.items()})


# --- state ----------------------------------------------------------------------------------------


class Seen(Shared):
    """The words that any run of any task has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.words: set[str] = set()


class Unlucky(ss.StatefulBolt):
    """Counts words; the database is away when a word comes for the first time, in any process."""

    outputs = "word string"

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def execute(self, tup: ss.Tuple) -> None:
        word = tup["word"]
        if word not in self.seen.words:
            self.seen.words.add(word)
            raise ConnectionError("database away")
        self.state.put(word, self.state.get(word, 0) + 1)
        self.collector.emit([word], anchors=tup)
        self.collector.ack(tup)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_stage_that_runs_twice_and_fails_once(guarantee: str) -> None:
    """The first run's state would be committed, and the second one's packets say that all is well.

    Once the batch was rolled back, both runs do the same, and it may be committed.
    """
    seen = Seen()
    builder = ss.TopologyBuilder()
    builder.set_spout("words", LogSpout(ROWS, "word string", split_rows=len(ROWS)))
    builder.set_bolt("count", Unlucky(seen)).fields_grouping("words", "word")
    simulation = Simulation(
        builder.create_topology(),
        faults=Faults.only(repeated_task=1.0),
        config=ss.Config(processing_guarantee=guarantee),
        reproducible=False,
    )
    outcome = simulation.run(turns=1)
    assert outcome.acked == {("words", n): 1 for n in range(4)}
    assert outcome.failures == {}
    assert outcome.state["count"] == ALL
    assert outcome.statistics.rollbacks == 1


class TwoProcesses:
    """Runs jobs in the process that the test names; what it wrote counts only if it commits."""

    def __init__(self, plan: Plan) -> None:
        self.processes = [Worker(plan), Worker(plan)]
        self.chosen = 0
        self._plan = plan
        self._committed: dict[str, MemoryStore] = {}
        self._written: dict[str, MemoryStore] = {}
        self._jobs = 0

    def run(self, batch: BatchInfo, loads: Loads) -> JobResult:
        """Run all stages in the chosen process, from the committed state."""
        self._jobs += 1
        self._written = {}
        boxes: dict[int, list[bytes]] = {}
        for stage in self._plan.stages:
            job = StageJob(
                worker=self.processes[self.chosen],
                stage=stage,
                partition=0,
                batch=batch,
                attempt=f"job {self._jobs}",
                store=self._store,
            )
            mine = loads.get(0, ()) if stage.kind is StageKind.READ else ()
            sent, _ = job.run(boxes.get(0, []), mine)
            boxes = {0: [data for _, data in sent]}
        return JobResult(rows=boxes[0])

    def commit(self) -> None:
        """Keep what the last job wrote."""
        self._committed.update(self._written)

    def roll_back(self) -> None:
        """Forget what the last job wrote."""
        self._written = {}

    def stores(self) -> Mapping[str, MemoryStore]:
        """The committed state."""
        return self._committed

    def close(self) -> None:
        """Nothing to close."""

    def _store(self, name: str) -> MemoryStore:
        return self._written.setdefault(name, self._committed.get(name, MemoryStore()).copy())


def test_aborted_attempt_whose_version_another_process_commits() -> None:
    """The first process has an image of version 1 that never was; it notices and reads anew."""
    feeder, made = FeederSpout("word string"), []

    def jobs(plan: Plan) -> TwoProcesses:
        made.append(TwoProcesses(plan))
        return made[0]

    builder = ss.TopologyBuilder()
    builder.set_spout("words", feeder)
    builder.set_bolt("count", Count()).fields_grouping("words", "word")
    topology = builder.create_topology()
    with LocalRunner(topology, partitions=1, clock=ManualClock(), jobs=jobs) as runner:
        # Given a first batch, committed by process 0
        feeder.feed(["a"], msg_id=0)
        assert runner.step()
        # When the second one runs there, fails, and runs in process 1 with one message less
        feeder.feed(["a"], msg_id=1)
        feeder.feed(["b"], msg_id=2)
        runner.ask_spouts()
        assert runner.plan_batch()
        runner.run_job()
        [span] = runner.coordinator.info(runner.number).ranges
        runner.coordinator.leave_out(runner.number, [RootRange(span.first, 1)], {})
        made[0].chosen = 1
        runner.finish(runner.run_job())
        runner.commit()
        assert runner.state("count") == {"a": 1, "b": 1}
        # Then process 0 goes on from what was committed, not from what it remembers
        made[0].chosen = 0
        feeder.feed(["a"], msg_id=3)
        feeder.feed(["b"], msg_id=4)
        assert runner.step()
        runner.run_until_idle()
        assert runner.state("count") == {"a": 3, "b": 2}
    assert (sorted(feeder.acked), feeder.failed) == ([0, 1, 2, 3, 4], [])


# --- the acker --------------------------------------------------------------------------------


def test_a_failed_tuple_beside_an_acked_sibling_in_one_merge() -> None:
    """The failure wins, whichever of the two the acker sees first; the reason is the bolt's."""
    feeder = FeederSpout("word string")
    builder = ss.TopologyBuilder()
    builder.set_spout("words", feeder)
    builder.set_bolt("twins", Twins()).shuffle_grouping("words")
    builder.set_bolt("picky", Picky(), 2).shuffle_grouping("twins")
    with LocalRunner(builder.create_topology(), clock=ManualClock()) as runner:
        for word in ("fine", "well", "foul"):
            feeder.feed([word], msg_id=word)
        runner.run_until_idle()
    assert feeder.acked == ["well"]
    assert sorted(feeder.failed) == ["fine", "foul"]
    assert {(f.reason, f.message) for f in feeder.failures} == {(ss.Reason.FAILED, "an f")}


FAILURE = ss.Failure(reason=ss.Reason.FAILED)


def settle(
    ledger: Ledger, span: RootRange | None, late: Mapping[int, int], failed: tuple[int, ...] = ()
) -> Verdicts:
    """Commit a batch in which the roots of ``span`` stay open and late shares come in."""
    spans = [] if span is None else [span]
    tally = Tally(spans, 0, 1)
    for one in spans:
        tally.hold(np.arange(one.first, one.first + one.count, dtype=np.uint64))
    tally.add(Entries(np.array([*late], np.uint64), np.array([*late.values()], np.uint64)))
    for root in failed:
        tally.fail(FailedRoots.of({root: FAILURE}))
    ledger.begin(spans)
    return ledger.settle(spans, [tally.result()], 0.0)


def seed_of(root: int) -> int:
    """The share of a message that was only routed to one bolt."""
    return int(seeds(np.array([root], np.uint64))[0])


OLD, NEW = make_root(1, 0), make_root(1, 10)


def test_a_held_tuple_over_a_driver_crash() -> None:
    """The share of a tuple that outlived its driver ends no message of the next one."""
    before = Ledger(30.0, 0.0)
    settle(before, RootRange(OLD, 1), {})
    assert before.open == 1
    after = Ledger(30.0, 0.0)
    settle(after, RootRange(NEW, 1), {})
    # the held tuple of the old life is acked, and then failed, in the new one
    for failed in ((), (OLD,)):
        verdicts = settle(after, None, {OLD: seed_of(OLD)}, failed)
        assert not verdicts.acked.tolist()
    assert not len(verdicts.failed)
    assert after.open_roots().tolist() == [NEW]


def test_redelivery_of_a_message_whose_old_copy_is_held() -> None:
    """Both copies may be acked, in any order: only the new root's share completes the message."""
    for order in ((OLD, NEW), (NEW, OLD)):
        ledger = Ledger(30.0, 0.0)
        settle(ledger, RootRange(NEW, 1), {})
        found = [settle(ledger, None, {root: seed_of(root)}) for root in order]
        assert [root for verdicts in found for root in verdicts.acked.tolist()] == [NEW]
        assert found[order.index(NEW)].acked.tolist() == [NEW]
        assert ledger.pending == 0


def test_a_message_that_timed_out_is_redelivered_while_its_old_copy_is_held() -> None:
    """The old root has ended; what comes for it late changes nothing, nor does it end the new."""
    ledger = Ledger(30.0, 0.0)
    settle(ledger, RootRange(OLD, 1), {})
    assert set(ledger.expire(100.0).failed) == {OLD}
    ledger.begin([RootRange(NEW, 1)])
    tally = Tally([RootRange(NEW, 1)], 0, 1)
    tally.hold(np.array([NEW], np.uint64))
    tally.add(Entries(np.array([OLD], np.uint64), np.array([seed_of(OLD)], np.uint64)))
    verdicts = ledger.settle([RootRange(NEW, 1)], [tally.result()], 100.0)
    assert not verdicts.acked.tolist()
    assert not len(verdicts.failed)
    assert ledger.open_roots().tolist() == [NEW]
