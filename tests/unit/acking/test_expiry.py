"""Rotating buckets: what expires, and when."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.expiry import RotatingBuckets

TIMEOUT_S = 30.0


def ages_to_expire(buckets: RotatingBuckets, start: float, step: float) -> float:
    """Put something in at ``start`` and look every ``step`` seconds; returns its age at the end."""
    buckets.rotate(start)
    kept = np.array([buckets.newest])
    now = start
    while True:
        now += step
        kept = buckets.aged(kept, buckets.rotate(now))
        if buckets.expired(kept).all():
            return now - start


@given(start=st.floats(0, 1e6), timeout=st.floats(0.5, 1e4))
def test_a_root_expires_between_the_timeout_and_a_tenth_more(start: float, timeout: float) -> None:
    """The bound holds whenever it was put in, for whoever looks often enough."""
    step = timeout / 200
    age = ages_to_expire(RotatingBuckets(timeout, 0.0), start, step)
    slack = 1e-9 * (start + timeout)
    assert timeout - slack <= age <= 1.1 * timeout + step + slack


@given(st.floats(TIMEOUT_S * 1.1, TIMEOUT_S * 1000))
def test_what_nobody_looked_at_for_long_has_expired(pause: float) -> None:
    """Also if the 256 numbers of buckets went round meanwhile, and their ages look young."""
    buckets = RotatingBuckets(TIMEOUT_S, 0.0)
    kept = np.array([buckets.newest])
    kept = buckets.aged(kept, buckets.rotate(pause + 0.001))
    assert buckets.expired(kept).all()


def test_what_has_expired_stays_so() -> None:
    """However often the numbers go round."""
    buckets = RotatingBuckets(TIMEOUT_S, 0.0)
    kept = np.array([buckets.newest])
    for now in range(0, 3000, 3):
        kept = buckets.aged(kept, buckets.rotate(float(now)))
        assert buckets.expired(kept).all() == (now > TIMEOUT_S)


def test_rotating_tells_by_how_much_it_turned() -> None:
    """Time that stands still or goes back turns nothing."""
    buckets = RotatingBuckets(TIMEOUT_S, 100.0)
    assert [buckets.rotate(now) for now in (100.0, 102.9, 103.0, 110.0, 105.0)] == [0, 0, 1, 2, 0]
    assert buckets.tick == 3
