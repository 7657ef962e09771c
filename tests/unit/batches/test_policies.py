"""The pure policies of delivery: retries, batch sizes, plans as JSON."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm import Config, Split
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.batches.planning.sizing import BatchSizer
from sparkstorm.packets.load import Load
from sparkstorm.sources.planned import Outstanding, PlannedLoad
from sparkstorm.sources.retry import RetryPolicy


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
    """What a backlog makes of it: tests/property/test_batch_sizes.py."""

    def test_reaches_the_target(self) -> None:
        """At a steady rate, full batches come to take the wanted time, on the mean."""
        sizer, times = BatchSizer(target_secs=1.0, most_secs=60.0), []
        for _ in range(30):
            times.append(0.05 + sizer.limit / 50_000)
            sizer.observe(messages=sizer.limit, secs=times[-1])
        assert 0.8 <= sum(times[20:]) / 10 <= 1.2
        assert min(times[20:]) >= 0.6
        assert max(times[20:]) <= 1.4

    def test_grows_at_once(self) -> None:
        """A batch that cost next to nothing is followed by much larger ones."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, minimum=10)
        for _ in range(3):
            sizer.observe(messages=sizer.limit, secs=0.01)
        assert sizer.limit > 1_000

    def test_shrinks_when_too_slow(self) -> None:
        """Batches that take too long get smaller, down to the minimum."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, minimum=10)
        for _ in range(40):
            sizer.observe(messages=sizer.limit, secs=3.0 * sizer.limit)
        assert 10 <= sizer.limit <= sizer.highest <= 15

    @pytest.mark.parametrize("before", [30, 31], ids=["large batch", "small batch"])
    def test_shrinks_at_once_to_the_longest_that_is_allowed(self, before: int) -> None:
        """A bolt that becomes a thousand times slower makes one very long batch, and no second."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, minimum=10)
        for _ in range(before):
            sizer.observe(messages=sizer.limit, secs=0.2 + sizer.limit * 1e-5)
        sizer.observe(messages=sizer.limit, secs=0.2 + sizer.limit * 1e-2)
        for _ in range(20):
            secs = 0.2 + sizer.limit * 1e-2
            assert secs <= 90.0
            sizer.observe(messages=sizer.limit, secs=secs)

    def test_a_fixed_cost_over_the_longest_time_leaves_messages_the_target(self) -> None:
        """There is no size that keeps the bound, and a small one would never end a backlog."""
        sizer, sizes = BatchSizer(target_secs=1.0, most_secs=5.0, minimum=1), []
        for _ in range(40):
            sizes.append(sizer.limit)
            sizer.observe(messages=sizer.limit, secs=8.0 + sizer.limit * 1e-4)
        assert 5_000 <= sum(sizes[30:]) / 10 <= 30_000

    @given(st.lists(st.tuples(st.integers(0, 10**7), st.floats(0, 1e9)), max_size=30))
    def test_stays_within_its_limits(self, observed: list[tuple[int, float]]) -> None:
        """Whatever it observes, the limit lies between 1 and the maximum."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, maximum=5000)
        for messages, secs in observed:
            sizer.observe(messages=messages, secs=secs)
            assert 1 <= sizer.limit <= sizer.highest <= 5000

    def test_a_long_time_at_the_maximum(self) -> None:
        """However long batches could have been larger, they get smaller once they are slow."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, minimum=1, maximum=100)
        for _ in range(1000):
            sizer.observe(messages=sizer.limit, secs=0.01)
        assert sizer.highest == 100
        for _ in range(12):
            sizer.observe(messages=sizer.limit, secs=0.1 * sizer.limit)
        assert sizer.limit <= 20

    def test_a_fixed_size_is_fixed(self) -> None:
        """With the minimum at the maximum, nothing is tried out."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0, minimum=40, maximum=40)
        for secs in (0.01, 100.0, 3.0, 0.5):
            sizer.observe(messages=40, secs=secs)
            assert sizer.limit == sizer.highest == 40

    def test_small_batches_say_little(self) -> None:
        """A batch that was small because there was little to do does not shrink the next ones."""
        sizer = BatchSizer(target_secs=1.0, most_secs=60.0)
        before = sizer.limit
        sizer.observe(messages=3, secs=0.4)
        assert sizer.limit == before


splits = st.builds(
    Split,
    count=st.just(3),
    data=st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none(), max_size=3),
    size=st.integers(0, 10**12),
    only=st.none() | st.just((1, 5, 9)),
    kept=st.none() | st.just(({"value": "eA=="}, None, "more")),
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
