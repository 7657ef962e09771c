"""How a batch is run to its end: with the real coordinator, and jobs of the in-process runner."""

from types import SimpleNamespace
from typing import Any

import sparkstorm as ss
from sparkstorm.batches.drive import JobError
from sparkstorm.local.jobs import LocalJobs
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.outcomes import BatchRunner
from sparkstorm.tasks.state_runs import Place
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock

TOTAL = 5


class Killed(BaseException):
    """Stands for the end of a process; no exception, so that nobody catches it."""


def numbers() -> LogSpout:
    """Numbers from zero, in one split."""
    return LogSpout([[n] for n in range(TOTAL)], "n int", split_rows=TOTAL)


class Dangerous(ss.BasicBolt):
    """1 kills its process, 2 fails at first, and 3 kills its process from its second try on."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        number, again = tup["n"], tup.attempt > 1
        if number == 1 or (number == 3 and again):
            raise Killed
        if number == 2 and not again:
            raise ValueError("at first")


class Jobs:
    """What a batch's jobs are on Spark, run in this process."""

    def __init__(self, jobs: LocalJobs, runner: LocalRunner) -> None:
        self.actions = 0
        self._jobs = jobs
        self._loads = runner.coordinator.loads(0)

    def run(self, info: BatchInfo, limit: float) -> list[bytes]:
        self.actions += 1
        try:
            return list(self._jobs.run(info, self._loads).rows)
        except Killed as killed:
            raise JobError("a worker died") from killed
        finally:
            if info.purpose is not Purpose.BATCH:
                self._jobs.roll_back()

    def roll_back(self) -> None:
        self._jobs.roll_back()

    def states(self, plan: Plan) -> dict[Place, int]:
        return {}


def test_a_second_search_leaves_out_what_the_first_one_found() -> None:
    """A batch that is rolled back after a search, and then fails of something else."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", numbers())
    builder.set_bolt("bolt", Dangerous()).shuffle_grouping("numbers")
    config = ss.Config(
        processing_guarantee="exactly-once", retry_backoff_secs=0, dead_letters="off"
    )
    made: list[LocalJobs] = []

    def make(plan: Any) -> LocalJobs:
        made.append(LocalJobs(plan))
        return made[0]

    topology = builder.create_topology()
    with LocalRunner(topology, config=config, clock=ManualClock(), jobs=make) as runner:
        assert runner.plan_batch()
        jobs: Any = Jobs(made[0], runner)
        told: Any = SimpleNamespace(value=[])
        batches = BatchRunner(runner.coordinator, runner.plan, told)
        batches.run(jobs, 0)
        runner.commit()
        statistics = runner.run_until_idle()
    assert (statistics.acked, statistics.given_up, statistics.rollbacks) == (TOTAL - 2, 2, 1)
    assert jobs.actions < 25
