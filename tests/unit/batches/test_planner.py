"""The planner: shares of the sources that have something to give."""

import sparkstorm as ss
from sparkstorm.batches.planning.planner import BatchPlanner
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.planning.passes import make_plan
from sparkstorm.sources.sources import Sources
from sparkstorm.testing import FeederSpout, ManualClock


class Sink(ss.BasicBolt):
    """Takes all."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Nothing."""


def test_a_batch_of_sources_that_have_nothing_is_no_batch() -> None:
    """A source may say that it need not be asked; if all do, there is nothing to plan."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", FeederSpout("n int"))
    builder.set_bolt("sink", Sink()).shuffle_grouping("numbers")
    plan = make_plan(builder.create_topology(), name="t", config=ss.Config(), partitions=2)
    clock = ManualClock()
    letters = DeadLetterQueue("t", LetterStore(MemoryFiles()), clock)
    sources = Sources(plan, letters)
    sources._all = [source for source in sources if not source.ready]
    planner = BatchPlanner(plan, sources, clock, "run")
    assert planner.plan(0, fresh=True, now=0.0) is None
