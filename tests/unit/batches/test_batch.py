"""The phases of a batch: each event leads where the table says, and any other one raises."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.batches.batch import NEXT, Batch, Event, Phase
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.errors import InternalError

PLAN = BatchPlan(number=7, run="r")


def batch(*events: Event, phase: Phase = Phase.PLANNED) -> Batch:
    """A batch after these events."""
    made = Batch(PLAN, phase)
    for event in events:
        made.advance(event)
    return made


def test_a_batch_without_mishap() -> None:
    """Planned, run, judged, decided, applied and committed, in this order."""
    made = batch()
    for event, phase in [
        (Event.WRITTEN, Phase.DURABLE),
        (Event.STARTED, Phase.DURABLE),
        (Event.RAN, Phase.RAN),
        (Event.JUDGED, Phase.JUDGED),
        (Event.DECIDED, Phase.DECIDED),
        (Event.APPLIED, Phase.APPLIED),
        (Event.COMMITTED, Phase.COMMITTED),
    ]:
        made.advance(event)
        assert made.phase is phase


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.COMMITTED])
def test_spark_may_start_a_batch_once_more_until_it_is_committed(phase: Phase) -> None:
    """Whatever its phase was, its plan is written before its job runs."""
    unwritten = phase in (Phase.RECOVERED, Phase.PLANNED)
    wanted = Phase.PLANNED if unwritten else Phase.DURABLE
    assert batch(Event.STARTED, phase=phase).phase is wanted


def test_nothing_is_committed_that_was_not_applied() -> None:
    """Spark cannot commit a batch whose job did not run to its end, and says so if it seems to."""
    for phase in Phase:
        if phase not in (Phase.APPLIED, Phase.RECOVERED):
            with pytest.raises(InternalError, match=f"batch 7 is {phase}, and cannot be committed"):
                batch(Event.COMMITTED, phase=phase)


def test_nothing_is_rolled_back_that_was_judged() -> None:
    """What another driver may already know must not change."""
    for phase in (Phase.JUDGED, Phase.DECIDED, Phase.APPLIED, Phase.COMMITTED):
        with pytest.raises(InternalError, match="cannot be rolled back"):
            batch(Event.ROLLED_BACK, phase=phase)


@given(st.lists(st.sampled_from(list(Event)), max_size=30))
def test_an_event_out_of_turn_raises_and_changes_nothing(events: list[Event]) -> None:
    """Whatever happens in whatever order, the phase is the one that the table gives."""
    made, phase = batch(), Phase.PLANNED
    for event in events:
        following = NEXT.get((phase, event))
        if following is None:
            with pytest.raises(InternalError):
                made.advance(event)
        else:
            made.advance(event)
            phase = following
        assert made.phase is phase


def reachable(start: Phase) -> Iterator[Phase]:
    """Yield all phases that a batch may come to."""
    seen, waiting = set(), [start]
    while waiting:
        phase = waiting.pop()
        if phase not in seen:
            seen.add(phase)
            waiting += [to for (at, _), to in NEXT.items() if at is phase]
            yield phase


def test_each_phase_leads_to_the_commit() -> None:
    """No batch is ever stuck, and no row of the table is for nothing."""
    for phase in Phase:
        assert Phase.COMMITTED in reachable(phase)
    assert {*reachable(Phase.RECOVERED)} == {*Phase}
