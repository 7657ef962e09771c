"""Histograms, windows and message times beside naive models."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.ids import make_root
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.message_times import MessageTimes
from sparkstorm.metrics import Histogram, TaskMetrics, Windows

amounts = st.lists(st.floats(1e-8, 1e9), max_size=40)


@given(st.lists(amounts, max_size=5))
def test_histograms_add_up_exactly(parts: list[list[float]]) -> None:
    """The sum of parts is the histogram of the whole, but for the rounding of the total."""
    whole = [amount for part in parts for amount in part]
    added = sum((Histogram.of(np.array(part)) for part in parts), Histogram())
    expected = Histogram.of(np.array(whole))
    assert added.buckets == expected.buckets
    assert np.isclose(added.total, expected.total)
    assert added.count == len(whole)


@given(amounts.filter(bool), st.floats(0.01, 1.0))
def test_a_quantile_is_at_most_a_tenth_off(seen: list[float], share: float) -> None:
    """Compared with the amount that the sorted list has there."""
    place = max(0, int(np.ceil(share * len(seen))) - 1)
    exact = sorted(seen)[place]
    assert abs(Histogram.of(np.array(seen)).quantile(share) / exact - 1) < 0.1


def test_zeros_count_and_are_zero() -> None:
    """A clock that has not moved between two readings gives zeros."""
    zeros = Histogram.of(np.zeros(3))
    assert (zeros.count, zeros.mean, zeros.quantile(0.5)) == (3, 0.0, 0.0)
    assert Histogram().quantile(0.5) == Histogram().mean == 0.0


@given(amounts, st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_counts_below_bounds_ascend_up_to_all(seen: list[float], bounds: list[float]) -> None:
    """As the buckets of Prometheus need."""
    made = Histogram.of(np.array(seen))
    below = made.up_to([*sorted(bounds), float("inf")])
    assert below == sorted(below)
    assert below[-1] == len(seen)


@given(st.dictionaries(st.integers(-100, 100), st.integers(1, 50)), st.integers(1, 200))
def test_a_sample_stands_for_all_amounts_alike(buckets: dict[int, int], most: int) -> None:
    """All of them if they are few; else each bucket has its share, by at most one off."""
    made = Histogram(buckets)
    taken = Histogram.of(np.array(made.sample(most)))
    every = max(1.0, made.count / most)
    if every == 1.0:
        assert taken.buckets == buckets
    assert abs(taken.count - made.count / every) <= 1
    assert all(abs(taken.buckets.get(n, 0) - buckets[n] / every) <= 1 for n in buckets)


@given(st.lists(st.tuples(st.floats(0, 9000), st.integers(1, 5)), max_size=30))
def test_a_window_has_the_last_parts_and_no_more(steps: list[tuple[float, int]]) -> None:
    """All of the window's length, and at most a twentieth more."""
    windows, now, events = Windows(0.0), 0.0, []
    for wait, count in steps:
        now += wait
        events.append((now, count))
        windows.add([("bolt", 3, TaskMetrics(acked=count))], now)
        for length in (600, 10_800, 86_400):
            found = windows.last(length, now)
            acked = found.components["bolt"].acked if found.components else 0
            inner = sum(n for at, n in events if at > now - length)
            outer = sum(n for at, n in events if at >= now - length * 21 / 20)
            assert inner <= acked <= outer
            tasks = found.tasks.get(("bolt", 3), TaskMetrics())
            assert tasks.acked == acked
    whole = windows.last(None, now).components.get("bolt", TaskMetrics())
    assert whole.acked == sum(n for _, n in events)


@given(st.data())
def test_each_root_knows_the_time_of_its_batch(data: st.DataObject) -> None:
    """Whatever was forgotten: no batch that has an open root."""
    times, planned, opened, following = MessageTimes(), {}, set(), {1: 1, 5: 1}
    for now in range(data.draw(st.integers(1, 100))):
        ranges = []
        for task in data.draw(st.sets(st.sampled_from([1, 5]))):
            count = data.draw(st.integers(1, 3))
            first = make_root(task, following[task])
            following[task] += count
            ranges.append(RootRange(first, count))
            planned.update({first + place: now for place in range(count)})
            opened |= set(range(first, first + count))
        times.begin(ranges, float(now))
        ended = data.draw(st.sets(st.sampled_from(sorted(opened)), max_size=4)) if opened else set()
        opened -= ended
        roots = np.array(sorted(opened), np.uint64)
        times.forget(roots.copy)
        for task in (1, 5):
            mine = roots[roots >> np.uint64(47) == task]
            ages = times.ages(task, mine, float(now))
            assert ages.tolist() == [now - planned[root] for root in mine.tolist()]
    assert len(times) <= 64 + len(planned)


def test_roots_of_an_earlier_driver_have_no_age() -> None:
    """Nobody here knows when their batch was planned."""
    times = MessageTimes()
    times.begin([RootRange(make_root(1, 100), 5)], 7.0)
    roots = np.array([make_root(1, 50), make_root(1, 102)], np.uint64)
    assert times.ages(1, roots, 9.0).tolist() == [2.0]
    assert times.ages(2, roots[:0], 9.0).tolist() == []


def test_ended_batches_are_forgotten() -> None:
    """A million batches take no more memory than those with open roots."""
    times = MessageTimes()
    for number in range(1000):
        times.begin([RootRange(make_root(1, 10 * number), 10)], float(number))
        times.forget(lambda: np.array([make_root(1, 42)], np.uint64))
    assert len(times) < 70
    assert times.ages(1, np.array([make_root(1, 42)], np.uint64), 1000.0).tolist() == [996.0]
