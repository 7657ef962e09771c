"""A decision about a batch says the same to the driver that comes after."""

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.packets.load import Load
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.verdicts import Failure, Reason

COUNTS = st.lists(st.integers(1, 20), min_size=1, max_size=5)


def plan_of(counts: list[int], start: int) -> BatchPlan:
    """A plan with a load of each of these counts, the roots with gaps between."""
    loads, first = [], start
    for lane, count in enumerate(counts):
        load = Load(
            component="spout", task=1, stream="default", lane=lane, count=count, first=first
        )
        loads.append(PlannedLoad(load=load, partition=0, owner="spout/0"))
        first += count + 7
    return BatchPlan(number=3, run="r", loads=tuple(loads))


def places(plan: BatchPlan, roots: set[int]) -> set[tuple[int, int]]:
    """Roots as load and position."""
    return {
        (load.load.lane, root - load.range.first)
        for load in plan.loads
        for root in roots
        if load.range and load.range.first <= root < load.range.first + load.range.count
    }


@given(COUNTS, st.data())
def test_it_means_the_same_messages_with_other_roots(
    counts: list[int], data: st.DataObject
) -> None:
    """Whatever ranges are left out, and whichever roots were given up."""
    was, now = plan_of(counts, 1000), plan_of(counts, 5_000_000)
    last = was.loads[-1].load.first
    assert last is not None
    end = last + counts[-1]
    spans = data.draw(st.lists(st.tuples(st.integers(990, end), st.integers(1, 30)), max_size=4))
    roots = {r for span in was.ranges for r in range(span.first, span.first + span.count)}
    given_up = data.draw(st.sets(st.sampled_from(sorted(roots))))
    decision = Decision(
        time=1.5,
        excluded=tuple(RootRange(*span) for span in spans),
        given_up=FailedRoots.of(
            {r: Failure(reason=Reason.ERROR, message=str(r)) for r in given_up}
        ),
        staged={"a": b"", "b": b"\x00" * 9},
        tries=3,
    )
    read = Decision.from_bytes(decision.to_bytes())
    assert read == decision
    carried = read.carried_over(was, now)
    left_out = {r for first, count in spans for r in range(first, first + count)} & roots
    now_out = {r for s in carried.excluded for r in range(s.first, s.first + s.count)}
    assert places(now, now_out) == places(was, left_out)
    assert len(now_out) == len(left_out)
    assert places(now, set(carried.given_up)) == places(was, given_up)
    assert (carried.staged, carried.tries) == (decision.staged, 3)
