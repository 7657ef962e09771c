"""The size of batches: a backlog is worked off, whatever a batch and a message cost."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from sparkstorm.batches.planning.sizing import BatchSizer

TARGET, MOST = 1.0, 60.0


@dataclass(frozen=True)
class Load:
    """What a batch costs, and each of its messages."""

    fixed: float
    each: float

    def secs(self, messages: float) -> float:
        """How long a batch takes."""
        return self.fixed + self.each * messages

    @property
    def best_rate(self) -> float:
        """Messages a second in batches as long as they may be."""
        messages = max((MOST - self.fixed) / self.each, 1.0)
        return messages / (self.fixed + self.each * messages)


def backlog(
    sizer: BatchSizer, load: Load, batches: int, noise: float = 0.0, seed: int = 0
) -> Iterator[int]:
    """Run full batches; yield their sizes."""
    draw = random.Random(seed)
    for _ in range(batches):
        messages = sizer.limit
        secs = load.secs(messages) * draw.lognormvariate(0, noise)
        sizer.observe(messages=messages, secs=secs)
        yield messages


def rate(load: Load, sizes: list[int]) -> float:
    """Messages a second in such batches."""
    return sum(sizes) / sum(map(load.secs, sizes))


loads = st.builds(
    Load,
    fixed=st.just(0.0) | st.floats(0.0, 1.0) | st.floats(0.0, 30.0),
    each=st.floats(-6.0, -1.0).map(lambda exponent: 10.0**exponent),
)
noises = st.sampled_from([0.0, 0.05, 0.1])
seeds = st.integers(0, 2**32)


@given(loads, noises, seeds)
@example(Load(2.6, 1e-5), 0.0, 0)
@example(Load(30.0, 1e-6), 0.0, 0)
def test_a_backlog_has_half_of_the_best_rate(load: Load, noise: float, seed: int) -> None:
    """It once stayed at 1,000 a batch for ever, where a batch costs as much as its target."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    _start = list(backlog(sizer, load, 25, noise, seed))
    assert rate(load, list(backlog(sizer, load, 30, noise, seed + 1))) >= 0.5 * load.best_rate


@given(loads, loads, noises, seeds)
@example(Load(0.0, 0.05), Load(0.75, 1e-6), 0.0, 0)
@example(Load(0.3, 1e-6), Load(0.3, 0.1), 0.0, 0)
def test_it_follows_a_load_that_changes(before: Load, load: Load, noise: float, seed: int) -> None:
    """Both costs jump at once, over any number of orders."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    _before = list(backlog(sizer, before, 60, noise, seed))
    _change = list(backlog(sizer, load, 25, noise, seed + 1))
    assert rate(load, list(backlog(sizer, load, 30, noise, seed + 2))) >= 0.5 * load.best_rate


@given(loads)
def test_sizes_come_to_rest(load: Load) -> None:
    """They lie above and below the wanted one in turns, and that does not move any more."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    sizes = list(backlog(sizer, load, 90))[60:]
    for turn in (sizes[::2], sizes[1::2]):
        assert max(turn) <= 1.2 * min(turn) + 1
    assert max(sizes) <= 3.6 * min(sizes) + 2


@given(loads)
def test_no_batch_takes_much_more_than_it_should(load: Load) -> None:
    """The target, or if the fixed cost is high some three times that; and at most what is set."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    sizes = list(backlog(sizer, load, 90))[60:]
    mean = load.secs(sum(sizes) / len(sizes))
    assert mean <= 1.15 * max(TARGET + load.each, min(4.5 * load.fixed, MOST))


@given(loads, st.floats(2.0, 30.0), st.floats(0.01, 1.0))
def test_slow_first_batches_do_not_matter(load: Load, first: float, second: float) -> None:
    """Processes start, and the JVM compiles: it once took the first batch for the usual one."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    for slower in (first, second):
        messages = sizer.limit
        sizer.observe(messages=messages, secs=load.secs(messages) + slower)
    _start = list(backlog(sizer, load, 25))
    assert rate(load, list(backlog(sizer, load, 30))) >= 0.5 * load.best_rate


@given(loads, st.lists(st.integers(1, 400), min_size=1, max_size=200))
def test_batches_of_what_is_there_leave_the_size_as_it_is(load: Load, few: list[int]) -> None:
    """Without a backlog nothing shows that larger ones are needed, or that they would be slow."""
    sizer = BatchSizer(TARGET, MOST, minimum=1_000)
    first = sizer.limit
    for messages in few:
        sizer.observe(messages=messages, secs=load.fixed + 1e-4 * messages)
    assert sizer.limit == first


@given(loads, st.lists(st.integers(1, 400), min_size=1, max_size=200))
def test_a_backlog_after_them_is_worked_off(load: Load, few: list[int]) -> None:
    """They have taught the fixed cost, so large ones soon tell what a message costs."""
    sizer = BatchSizer(TARGET, MOST, minimum=1)
    _before = list(backlog(sizer, load, 60))
    for messages in few:
        count = min(messages, sizer.limit)
        sizer.observe(messages=count, secs=load.secs(count))
    _change = list(backlog(sizer, load, 10))
    assert rate(load, list(backlog(sizer, load, 30))) >= 0.5 * load.best_rate
