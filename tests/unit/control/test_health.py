"""Readiness: polls and commits that really move."""

from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.control.health import why_not_ready
from sparkstorm.control.views import SituationView
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import LocalRunner, ManualClock

LIMIT_SECS = 60.0


class Hold(ss.StatefulBolt):
    """Holds every tuple for ever."""

    def init_state(self, state: ss.State) -> None:
        super().init_state(state)
        self.held = state.tuples("held")

    def execute(self, tup: ss.Tuple) -> None:
        self.held.add("all", tup)


def running(clock: ManualClock) -> LocalRunner:
    builder = ss.TopologyBuilder()
    builder.set_spout("items", IteratorSpout(["tea", "milk"], "item string"))
    builder.set_bolt("hold", Hold()).fields_grouping("items", ["item"])
    return LocalRunner(builder.create_topology(), clock=clock, config=ss.Config())


def situation(coordinator: Coordinator, status: Any = "ACTIVE") -> SituationView:
    stand, pace = coordinator.statistics(), coordinator.pace()
    return SituationView(
        at=0.0,
        status=status,
        emitted=stand.emitted,
        acked=stand.acked,
        failed=stand.failed,
        pending=stand.pending,
        waiting=pace.waiting,
        retried=stand.retried,
        given_up=stand.given_up,
        failures={},
        dead_letters=0,
        untracked_failed=0,
        rollbacks=0,
        batches=stand.batches,
        batch_secs=0.0,
        batch_messages=0,
        running_batch=stand.running_batch,
        running_secs=stand.running_secs,
        polled_secs=pace.polled_secs,
        committed_secs=pace.committed_secs,
        partitions=[],
        batch_times=[],
        spouts=dict(pace.spouts),
    )


def why(runner: LocalRunner, status: Any = "ACTIVE") -> str:
    return why_not_ready(situation(runner.coordinator, status), LIMIT_SECS)


def test_a_topology_that_waits_for_its_source_is_ready() -> None:
    """It has committed nothing for hours, and a bolt holds a tuple: nobody needs to do anything."""
    clock = ManualClock()
    with running(clock) as runner:
        for _ in range(5):
            runner.step()
            clock.advance(LIMIT_SECS - 1)
            assert why(runner) == ""


def test_a_topology_that_is_polled_no_more_is_not_ready() -> None:
    clock = ManualClock()
    with running(clock) as runner:
        runner.step()
        clock.advance(LIMIT_SECS + 1)
        assert why(runner) == "no spout was polled for 61 s"


def test_a_batch_that_is_not_committed_is_not_ready_however_often_spark_asks() -> None:
    """The query may be started again and again."""
    clock = ManualClock()
    with running(clock) as runner:
        runner.ask_spouts()
        for _ in range(3):
            assert runner.plan_batch()
            runner.drive()
            clock.advance(LIMIT_SECS / 2)
            runner.ask_spouts()
        runner.plan_batch()
        assert why(runner) == "batch 0 has been running for 90 s"
        runner.step()
        assert why(runner) == ""


def test_a_spout_that_does_not_return_is_not_ready() -> None:
    """Though Spark asks for batches as ever."""
    clock = ManualClock()
    with running(clock) as runner:
        runner.step()
        clock.advance(LIMIT_SECS + 1)
        runner.plan_batch()
        assert why(runner).startswith("spout 'items' was not called for 61 s")
        runner.ask_spouts()
        assert why(runner) == ""


@pytest.mark.parametrize("status", ["INACTIVE", "KILLED"])
def test_a_topology_that_rests_or_ends_is_not_ready(status: str) -> None:
    with running(ManualClock()) as runner:
        assert why(runner, status) == f"its status is {status}"
