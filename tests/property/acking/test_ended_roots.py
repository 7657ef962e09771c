"""Who is told of failed roots: whoever holds them, of those alone, and once."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import sparkstorm as ss
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.tally import HeldRoots
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.packets.packet import Kind, Packet
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.testing import FeederSpout
from sparkstorm.verdicts import Failure, Reason


class Holder(ss.StatefulBolt):
    """May hold tuples."""

    def execute(self, tup: ss.Tuple) -> None:
        """Nobody executes here."""


class Leaver(ss.Bolt):
    """May leave tuples open, but holds none."""

    def execute(self, tup: ss.Tuple) -> None:
        """Nobody executes here."""


def plan() -> Plan:
    """Three tasks that can hold, and one that cannot."""
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", FeederSpout("n int"))
    builder.set_bolt("hold", Holder(), 3).fields_grouping("spout", ["n"])
    builder.set_bolt("leave", Leaver()).shuffle_grouping("spout")
    return make_plan(builder.create_topology(), config=ss.Config(), partitions=2)


PLAN = plan()
FAILURE = Failure(reason=Reason.FAILED)
roots = st.integers(0, 30)


class EndedRootsMachine(RuleBasedStateMachine):
    """Batches that hold, ack and fail roots, beside sets of pairs."""

    @initialize()
    def start(self) -> None:
        """Begin without anything."""
        self.ended_roots = EndedRoots(PLAN)
        self.held: set[tuple[int, int]] = set()
        self.due: set[tuple[int, int]] = set()
        self.ended: set[int] = set()

    @rule(
        pairs=st.lists(
            st.tuples(roots, st.sampled_from([*PLAN.tasks["hold"], *PLAN.tasks["leave"]]))
        )
    )
    def hold(self, pairs: list[tuple[int, int]]) -> None:
        """Tasks say that they hold roots; some of these have ended before."""
        pending = [root not in self.ended for root, _ in pairs]
        self.ended_roots.note_held(
            HeldRoots(
                np.array([root for root, _ in pairs], np.uint64),
                np.array([task for _, task in pairs], np.int32),
            ),
            np.array(pending, np.bool_),
        )
        can_hold = {(root, task) for root, task in pairs if task in PLAN.tasks["hold"]}
        self.held |= {pair for pair in can_hold if pair[0] not in self.ended}
        self.due |= {pair for pair in can_hold if pair[0] in self.ended}

    @rule(acked=st.sets(roots), failed=st.sets(roots))
    def end(self, acked: set[int], failed: set[int]) -> None:
        """Roots end, each once."""
        failed -= self.ended
        acked -= self.ended | failed
        self.ended_roots.note_ended(
            np.array(sorted(acked), np.uint64), FailedRoots.of(dict.fromkeys(failed, FAILURE))
        )
        self.ended |= acked | failed
        self.due |= {pair for pair in self.held if pair[0] in failed}
        self.held = {pair for pair in self.held if pair[0] not in self.ended}

    @rule()
    def tell(self) -> None:
        """The next batch has one packet for each task that is to hear anything."""
        assert self.ended_roots.due == bool(self.due)
        told = {
            signal.target: Packet.decode(signal.packet).roots().tolist()
            for signal in self.ended_roots.take()
        }
        tasks = {task for _, task in self.due}
        assert told == {task: sorted(r for r, t in self.due if t == task) for task in tasks}
        self.due = set()
        assert (self.ended_roots.due, self.ended_roots.take()) == (False, ())

    @rule()
    def packet_is_of_the_engine(self) -> None:
        """So that it comes before all others."""
        for signal in self.ended_roots.take():
            assert Packet.decode(signal.packet).head.kind is Kind.ENDED
        self.due = set()

    @invariant()
    def nothing_is_kept_of_ended_roots(self) -> None:
        """Holders shrink with what they hold."""
        assert repr(self.ended_roots).endswith(f" {len(self.held)} held)")


TestEndedRoots = EndedRootsMachine.TestCase
TestEndedRoots.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=20
)
