"""What counts as a batch's time: all that keeps the next one waiting, and nothing that failed."""

from dataclasses import dataclass, field, replace

import pytest

import sparkstorm as ss
from sparkstorm.components.context import TaskContext
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock

EACH = 0.01
SMALL = ss.Config(batch_min_messages=10)


class Endless(ss.Spout):
    """Always has another message."""

    outputs = "n int"

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        self.collector, self.emitted = collector, 0

    def next_tuple(self) -> None:
        self.emitted += 1
        self.collector.emit([self.emitted], msg_id=self.emitted)


class Sink(ss.BasicBolt):
    """Reads them."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


@dataclass
class World:
    """Spark, whose files take their time, and jobs that take 10 ms a message."""

    runner: LocalRunner
    clock: ManualClock
    before: float = 0.0
    after: float = 0.0
    sizes: list[int] = field(default_factory=list)

    def batch(self, *, lost: float = 0.0, start: float = 0.1) -> None:
        """Run a batch; its first run may be lost, after so many seconds."""
        self.runner.ask_spouts()
        assert self.runner.plan_batch()
        self.clock.advance(self.before)
        if lost:
            self.runner.run_job()
            self.clock.advance(lost)
        result = self.runner.run_job()
        size = sum(span.count for span in self.runner.coordinator.info(self.runner.number).ranges)
        secs = start + EACH * size
        self.clock.advance(secs)
        self.runner.finish(replace(result, secs=secs))
        self.clock.advance(self.after)
        self.runner.apply()
        self.runner.commit()
        self.sizes.append(size)


def wired(spout: ss.Spout | ss.PartitionedSpout) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("sink", Sink()).shuffle_grouping("spout")
    return builder.create_topology()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("before", "after", "start"),
    [(2.0, 0.0, 0.1), (0.0, 2.0, 0.1), (0.0, 0.0, 2.1)],
    ids=["plan", "commit", "job"],
)
@pytest.mark.parametrize("hosted", [True, False])
def test_batches_outgrow_a_fixed_cost(
    before: float, after: float, start: float, hosted: bool
) -> None:
    """Wherever it arises; batches once stayed at the least size that they may always have."""
    spout = Endless() if hosted else LogSpout([[n] for n in range(20_000)], "n int", split_rows=100)
    clock = ManualClock()
    with LocalRunner(wired(spout), config=SMALL, clock=clock) as runner:
        world = World(runner, clock, before, after)
        for _ in range(24):
            world.batch(start=start)
    rest = world.sizes[12:]
    assert sum(rest) / len(rest) * EACH > 2.1
    # they are larger and smaller in turns, so that the costs can be told apart, still
    assert max(rest[-4:]) > 1.5 * min(rest[-4:])
    assert 0.8 < rest[-1] / rest[-3] < 1.2


def test_runs_that_were_lost_are_not_counted() -> None:
    """The query fell over and came back: that is no cost that a larger batch would spare."""
    clock = ManualClock()
    with LocalRunner(wired(Endless()), config=SMALL, clock=clock) as runner:
        world = World(runner, clock)
        for _ in range(10):
            world.batch()
        world.batch(lost=1000.0)
        for _ in range(4):
            world.batch()
    assert max(world.sizes[8:]) < 3 * min(world.sizes[8:])
    assert max(world.sizes[8:]) * EACH < 2.0
