"""The time of batches, whatever is done to the machine's clock."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.batches.planning.batch_clock import BatchClock
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.bolts import TumblingWindow, Window, WindowBolt
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.testing import FeederSpout, LocalRunner, LogSpout, ManualClock, MemorySink

START = 1_000_000_000.0
HOUR = 3600.0
ONE = {"batch_min_messages": 1, "batch_max_messages": 1}

events = st.lists(
    st.tuples(
        st.sampled_from(["batch", "batch", "set", "restart"]),
        st.floats(0, 2 * HOUR),  # seconds that pass before
        st.floats(-2 * HOUR, 2 * HOUR),  # by how much the clock is then set, if it is
    ),
    max_size=30,
)


@given(history=events)
def test_it_never_falls_and_goes_as_time_goes(history: list[tuple[str, float, float]]) -> None:
    """Between two batches of a life lies what has passed; over a restart, at least that."""
    clock = ManualClock()
    times = BatchClock(clock)
    last, passed, restarted = times.now(), 0.0, False
    for what, secs, step in history:
        clock.advance(secs)
        passed += secs
        if what == "batch":
            time = times.now()
            assert time >= last
            assert restarted or time - last == pytest.approx(passed, abs=1e-5)
            assert time - last >= passed - 1e-5
            last, passed, restarted = time, 0.0, False
            continue
        clock.set_wall(clock.wall() + step)
        if what == "restart":
            times, restarted, passed = BatchClock(clock), True, 0.0
            assert times.go_on(last) == last


@pytest.mark.parametrize(("ahead", "warned"), [(0.0, False), (4.0, False), (HOUR, True)])
def test_a_clock_that_is_behind_the_last_batch_is_told_of(
    ahead: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Time goes on from that batch then, and does not wait until the clock has come so far."""
    clock = ManualClock()
    times = BatchClock(clock)
    assert times.go_on(START + ahead) == START + ahead
    assert ("3600 s behind the time of the last batch" in caplog.text) is warned
    clock.advance(1.0)
    assert times.now() == START + ahead + 1.0


def test_a_plan_of_a_version_that_kept_no_time_can_be_read() -> None:
    """Its batch takes place when it is taken up."""
    plan = BatchPlan(number=3, run="x", time=5.5)
    assert BatchPlan.from_json(plan.to_json()) == plan
    older = plan.to_json().replace(b'"time": 5.5, ', b"")
    assert BatchPlan.from_json(older).time == 0.0
    assert BatchClock(ManualClock()).go_on(0.0) == START


class Count(WindowBolt):
    """Counts what is in a window."""

    outputs = "count long"
    window = TumblingWindow(5)

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        collector.emit([len(window)])


class When(ss.BasicBolt):
    """Says in which batch and at what time a number came."""

    outputs = "n long, batch long, time double"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["n"], self.context.batch, self.context.batch_time])


@pytest.mark.sweep
def test_windows_do_not_mind_a_clock_that_is_wrong_for_a_while() -> None:
    """A single batch at a wrong time would close all windows until that time comes."""
    clock, builder = ManualClock(), ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout([[n] for n in range(30)], "n long", split_rows=1))
    builder.set_bolt("count", Count()).shuffle_grouping("numbers")
    with LocalRunner(
        builder.create_topology(),
        clock=clock,
        config=ss.Config(**ONE, message_timeout_secs=30, max_retries=1, retry_backoff_secs=1),
    ) as runner:
        for second in range(120):
            clock.set_wall(START + second + (HOUR if second == 10 else 0.0))
            runner.step()
            clock.advance(1.0)
        statistics = runner.statistics()
    assert (statistics.acked, statistics.failed, statistics.given_up) == (30, 0, 0)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("at", ["planned", "finished"])
def test_a_batch_that_is_run_again_by_the_next_driver_has_its_time(guarantee: str, at: str) -> None:
    """Bolts decide by it; those that come after it go on from there, with a clock set back."""
    files, seen, sink = MemoryFiles(), list[Any](), MemorySink()

    def life(clock: ManualClock) -> LocalRunner:
        builder = ss.TopologyBuilder()
        builder.set_spout("numbers", LogSpout([[n] for n in range(3)], "n long", split_rows=1))
        builder.set_bolt("when", When()).shuffle_grouping("numbers")
        if guarantee == "exactly-once":
            builder.set_bolt("sink", sink).shuffle_grouping("when")
        return LocalRunner(
            builder.create_topology(),
            clock=clock,
            files=files,
            config=ss.Config(**ONE, processing_guarantee=guarantee),
            taps=["when"],
            on_tap=lambda key, task, rows: seen.extend(map(tuple, rows)),
        )

    clock = ManualClock()
    first = life(clock)
    first.__enter__()
    assert first.step()
    clock.advance(7.0)
    first.ask_spouts()
    assert first.plan_batch()
    rows = first.run_job()
    if at == "finished":
        assert first.finish(rows)  # and here it dies
    clock.set_wall(START - HOUR)
    with life(clock) as second:
        clock.advance(1.0)
        second.run_until_idle()
    told = sorted(sink.rows) if guarantee == "exactly-once" else sorted(seen)
    assert told == [(0, 0, START), (1, 1, START + 7.0), (2, 2, START + 8.0)]


def test_the_time_goes_on_after_a_clean_end(caplog: pytest.LogCaptureFixture) -> None:
    """The last word on the checkpoint has the time, too."""
    files, clock, seen = MemoryFiles(), ManualClock(), list[Any]()
    for name in ("first", "second"):
        feeder, builder = FeederSpout("n long"), ss.TopologyBuilder()
        builder.set_spout("numbers", feeder)
        builder.set_bolt("when", When()).shuffle_grouping("numbers")
        feeder.feed([1], msg_id=name)
        with LocalRunner(
            builder.create_topology(),
            clock=clock,
            files=files,
            taps=["when"],
            on_tap=lambda key, task, rows: seen.extend(row[2] for row in rows),
        ) as runner:
            runner.run_until_idle()
            clock.advance(7.0)
        clock.set_wall(START - HOUR)
    assert seen == [START, START + 7.0]
    assert "3607 s behind" in caplog.text
