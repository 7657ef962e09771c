"""The pure policies of delivery: retries, batch sizes, halving, plans as JSON."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm import Config, Split
from sparkstorm.acking.tally import RootRange
from sparkstorm.delivery.halving import Halving
from sparkstorm.delivery.plans import BatchPlan, Outstanding, PlannedLoad
from sparkstorm.delivery.retry import RetryPolicy
from sparkstorm.delivery.sizing import BatchSizer
from sparkstorm.execution.reading import Load


class TestRetryPolicy:
    @given(st.integers(1, 10_000), st.integers(), st.floats(0.001, 100), st.floats(100, 10_000))
    def test_delay_is_bounded_and_pure(
        self, attempt: int, key: int, first: float, cap: float
    ) -> None:
        """The wait lies in the last quarter below the doubled one, never over the cap."""
        policy = RetryPolicy(first_secs=first, max_secs=cap, max_retries=None)
        wait = policy.delay(attempt=attempt, key=key)
        whole = min(first * 2.0 ** min(attempt - 1, 62), cap)
        assert wait is not None
        assert 0.75 * whole <= wait <= whole
        assert wait == policy.delay(attempt=attempt, key=key)

    @pytest.mark.parametrize("retries", [0, 1, 16])
    def test_limit(self, retries: int) -> None:
        """The first attempt and ``max_retries`` further ones are made, then it is given up."""
        policy = RetryPolicy.of(Config(max_retries=retries))
        delays = [policy.delay(attempt=n, key=0) for n in range(1, retries + 2)]
        assert [delay is None for delay in delays] == [False] * retries + [True]

    def test_messages_that_failed_together_spread(self) -> None:
        """Different keys get different waits."""
        policy = RetryPolicy.of(Config())
        assert len({policy.delay(attempt=3, key=key) for key in range(100)}) == 100


class TestBatchSizer:
    def test_reaches_the_target(self) -> None:
        """At a steady rate, full batches come to take the wanted time."""
        sizer = BatchSizer(target_secs=1.0)
        for _ in range(20):
            sizer.observe(messages=sizer.limit, secs=0.05 + sizer.limit / 50_000)
        assert 0.7 <= 0.05 + sizer.limit / 50_000 <= 1.3

    def test_shrinks_when_too_slow(self) -> None:
        """Batches that take too long get smaller, down to the minimum."""
        sizer = BatchSizer(target_secs=1.0, minimum=10)
        sizer.observe(messages=10, secs=0.01)
        assert sizer.limit == 40
        for _ in range(40):
            sizer.observe(messages=sizer.limit, secs=3.0 * sizer.limit)
        assert sizer.limit == 10

    @given(st.lists(st.tuples(st.integers(0, 10**7), st.floats(0, 1e4)), max_size=30))
    def test_stays_within_its_limits(self, observed: list[tuple[int, float]]) -> None:
        """Whatever it observes, the limit lies between 1 and the maximum."""
        sizer = BatchSizer(target_secs=1.0, maximum=5000)
        for messages, secs in observed:
            sizer.observe(messages=messages, secs=secs)
            assert 1 <= sizer.limit <= 5000

    def test_small_batches_say_little(self) -> None:
        """A batch that was small because there was little to do does not shrink the next ones."""
        sizer = BatchSizer(target_secs=1.0)
        before = sizer.limit
        sizer.observe(messages=3, secs=0.4)
        assert sizer.limit == before


def play(
    ranges: list[RootRange], poisons: set[int], most: int = 2
) -> tuple[Halving, set[int], int]:
    """Run a batch to its end; return the halving, what went through, and how many attempts."""
    halving = Halving(ranges, max_poisons=most)
    everyone = {r for span in ranges for r in range(span.first, span.first + span.count)}
    tried, attempts = everyone, 1
    while tried & poisons:
        assert halving.tried, "it fails even without any message"
        out = halving.failed()
        tried = everyone - {r for s in out for r in range(s.first, s.first + s.count)}
        assert halving.tried == len(tried)
        attempts += 1
    return halving, tried, attempts


class TestHalving:
    @pytest.mark.parametrize("poison", [0, 1, 4_999, 5_000, 9_999])
    def test_finds_one_poison_among_ten_thousand(self, poison: int) -> None:
        """It costs log2 n batches at most, in which all the others go through."""
        left, found, batches = [RootRange(0, 10_000)], (), 0
        passed: set[int] = set()
        while not found:
            halving, through, attempts = play(left, {poison})
            found, batches = halving.poisons, batches + 1
            assert attempts <= 18
            passed |= through
            rest = sorted(set(range(10_000)) - passed - {poison})
            merged = sorted({*rest, poison})
            left = [RootRange(merged[0], len(merged))]
            assert merged == list(range(merged[0], merged[0] + len(merged)))
        assert found == (RootRange(poison, 1),)
        assert batches <= 14
        assert passed == set(range(10_000)) - {poison}

    def test_poison_at_the_front_costs_log2_attempts_of_one_batch(self) -> None:
        """All others go through in the very batch that finds it."""
        halving, passed, attempts = play([RootRange(0, 10_000)], {0})
        assert halving.poisons == (RootRange(0, 1),)
        assert passed == set(range(1, 10_000))
        assert attempts <= 18

    def test_first_failure_is_tried_again_whole(self) -> None:
        """Most failures are of the world: nothing is left out at once."""
        halving = Halving([RootRange(0, 10)])
        assert halving.failed() == ()
        assert halving.tried == 10

    def test_when_all_fail_it_soon_tries_nothing(self) -> None:
        """If every message fails alone, the batch is completed without any."""
        halving, passed, attempts = play([RootRange(0, 1000)], set(range(1000)))
        assert passed == set()
        assert len(halving.poisons) == 2
        assert attempts <= 26

    @given(
        st.lists(st.integers(1, 20), min_size=1, max_size=5),
        st.sets(st.integers(0, 99), max_size=6),
    )
    def test_never_lets_a_poison_through_nor_blames_the_innocent(
        self, sizes: list[int], poisons: set[int]
    ) -> None:
        """What is tried last holds no poison, and each one found is one."""
        ranges, start = [], 0
        for size in sizes:
            ranges.append(RootRange(start, size))
            start += size + 3
        halving, passed, _ = play(ranges, poisons)
        assert not passed & poisons
        assert all(span.count == 1 and span.first in poisons for span in halving.poisons)


splits = st.builds(
    Split,
    count=st.just(3),
    data=st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none(), max_size=3),
    size=st.integers(0, 10**12),
    only=st.none() | st.just((1, 5, 9)),
)
loads = st.builds(
    Load,
    component=st.text(min_size=1, max_size=5),
    task=st.integers(1, 100),
    stream=st.just("default"),
    lane=st.integers(0, 100),
    count=st.just(3),
    first=st.none() | st.integers(0, 2**63),
    split=splits,
)


class TestBatchPlan:
    @given(
        st.lists(
            st.builds(
                PlannedLoad, load=loads, partition=st.integers(0, 9), attempt=st.integers(1, 9)
            )
        ),
        st.dictionaries(st.text(), st.integers(0, 2**47)),
        st.lists(st.builds(Outstanding, owner=st.text(), split=splits, attempt=st.just(2))),
    )
    def test_survives_json(
        self,
        planned: list[PlannedLoad],
        sequences: dict[str, int],
        outstanding: list[Outstanding],
    ) -> None:
        """A plan read back is the plan that was written."""
        plan = BatchPlan(
            number=7,
            run="run",
            loads=tuple(planned),
            sequences=sequences,
            cursors={"s/0": {"file": [1, 2]}},
            outstanding=tuple(outstanding),
        )
        assert BatchPlan.from_json(plan.to_json()) == plan

    def test_hosted_messages_are_not_kept(self) -> None:
        """The values of hosted messages are not written."""
        load = Load(
            component="s", task=1, stream="default", lane=0, count=1, first=0, packet=b"secret"
        )
        plan = BatchPlan(number=0, run="", loads=(PlannedLoad(load=load, partition=0),))
        assert b"secret" not in plan.to_json()
        again = BatchPlan.from_json(plan.to_json())
        assert again == dataclasses.replace(
            plan,
            loads=(PlannedLoad(load=dataclasses.replace(load, packet=None), partition=0),),
        )
