"""When the query is started again: so often, or for so long, whosever fault it was."""

import pytest

from sparkstorm.config import Config
from sparkstorm.spark.driver.failures.restarts import Restarts


@pytest.fixture
def restarts() -> Restarts:
    """Two restarts may be counted; patience lasts a hundred seconds."""
    return Restarts(
        Config(
            query_max_restarts=2,
            query_restart_backoff_secs=1,
            query_restart_patience_secs=100,
            query_restart_window_secs=600,
        )
    )


def waits_until_given_up(restarts: Restarts, now: float) -> list[float]:
    waits = []
    while (wait := restarts.wait_patiently(now)) is not None:
        waits.append(wait)
        now += wait + 1.0  # it fails at once
    return waits


def test_patience_is_a_time_and_its_waits_grow(restarts: Restarts) -> None:
    """More restarts than are counted, further and further apart, until the time is over."""
    waits = waits_until_given_up(restarts, 0.0)
    assert len(waits) > 5
    assert waits[0] <= 1.0 < waits[1] <= 2.0 < waits[2] <= 4.0
    assert max(waits) <= 15.0
    assert 100.0 <= sum(waits) + len(waits) <= 116.0


def test_a_batch_that_gets_done_gives_all_the_patience_again(restarts: Restarts) -> None:
    """Failures go on for longer than the patience, but so does the work."""
    for start in range(0, 1000, 50):
        assert restarts.wait_patiently(float(start)) is not None
        restarts.note_healthy(start + 10.0)
    assert sum(waits_until_given_up(restarts, 1000.0)) > 50.0


def test_what_goes_away_by_itself_is_not_counted(restarts: Restarts) -> None:
    """Another failure after many of these has the whole number of restarts."""
    waits_until_given_up(restarts, 0.0)
    assert restarts.wait_after_failure(200.0) is not None
    assert restarts.wait_patiently(201.0) is None  # nothing has been done in between
    assert restarts.wait_after_failure(202.0) is not None
    assert restarts.wait_after_failure(203.0) is None


def test_a_batch_that_gets_done_does_not_renew_the_counted_ones(restarts: Restarts) -> None:
    """A fault of each second batch would go on for ever; only a long time of health helps."""
    for now in (0.0, 10.0):
        assert restarts.wait_after_failure(now) is not None
        restarts.note_healthy(now + 1.0)
    assert restarts.wait_after_failure(20.0) is None
    restarts.note_healthy(30.0)
    assert restarts.wait_patiently(700.0) is not None  # it ends that time of health
    assert restarts.wait_after_failure(701.0) is not None


def test_no_patience_at_all() -> None:
    """Zero seconds: the first such failure ends the run."""
    assert Restarts(Config(query_restart_patience_secs=0)).wait_patiently(5.0) is None
