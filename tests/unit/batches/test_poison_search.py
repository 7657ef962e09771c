"""The search for messages that kill or hang a batch: what it finds, what it costs."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.poisons.poison_search import Action, Poison, PoisonSearch, TimeLimits
from sparkstorm.packets.batch_info import Purpose


@dataclass
class World:
    """Runs the actions of a search as Spark would, with these poisons."""

    ranges: list[RootRange]
    fails: Callable[[set[int], Action], bool]
    actions: list[Action] = field(default_factory=list)

    @property
    def everyone(self) -> set[int]:
        return roots(self.ranges)

    def play(self, search: PoisonSearch) -> set[int]:
        """Go on until the batch passes or the search is hopeless; return what went through."""
        while not search.hopeless:
            action = search.action
            self.actions.append(action)
            tried = self.everyone - roots(action.excluded)
            assert len(tried) == action.messages
            if self.fails(tried, action):
                search.failed()
            elif action.purpose is Purpose.BATCH:
                return tried
            else:
                search.passed()
        return set()


def roots(ranges: object) -> set[int]:
    return {r for span in ranges for r in range(span.first, span.first + span.count)}  # type: ignore[attr-defined]


def found(search: PoisonSearch) -> set[int]:
    return {poison.root for poison in search.poisons}


def poisoned(ranges: list[RootRange], poisons: set[int]) -> World:
    return World(ranges, lambda tried, action: bool(tried & poisons))


def bound(messages: int, poisons: int) -> int:
    """A whole retry, a control; per poison the halving, two trials, a control, the rest."""
    return 2 + poisons * (math.ceil(math.log2(max(2, messages))) + 4)


spans = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=6).map(
    lambda sizes: [
        RootRange(sum(a + b for a, b in sizes[:n]), size) for n, (size, _) in enumerate(sizes)
    ]
)


@pytest.mark.parametrize("poison", [0, 1, 4_999, 5_000, 9_999])
def test_one_poison_among_ten_thousand_costs_log2_actions(poison: int) -> None:
    """All the others go through in the same batch."""
    search, world = PoisonSearch([RootRange(0, 10_000)]), poisoned([RootRange(0, 10_000)], {poison})
    assert world.play(search) == world.everyone - {poison}
    assert search.poisons == (Poison(poison, hung=False),)
    assert len(world.actions) <= bound(10_000, 1) == 20


@given(spans, st.data())
def test_finds_exactly_the_poisons_within_the_bound(
    ranges: list[RootRange], data: st.DataObject
) -> None:
    """Any set of poisons in any ranges: these and no others, all others go through."""
    everyone = sorted(roots(ranges))
    poisons = data.draw(st.sets(st.sampled_from(everyone), min_size=1, max_size=12))
    search, world = PoisonSearch(ranges, max_poisons=13), poisoned(ranges, poisons)
    assert world.play(search) == set(everyone) - poisons
    assert found(search) == poisons
    assert len(world.actions) <= bound(len(everyone), len(poisons))


@given(spans, st.data(), st.integers())
def test_accidents_condemn_nobody(ranges: list[RootRange], data: st.DataObject, seed: int) -> None:
    """Whatever else fails by chance, but not in trials: only poisons are condemned."""
    everyone, rng = roots(ranges), random.Random(seed)
    poisons = data.draw(st.sets(st.sampled_from(sorted(everyone)), max_size=4))
    world = World(
        ranges,
        lambda tried, action: (
            bool(tried & poisons) or (action.purpose is not Purpose.TRIAL and rng.random() < 0.2)
        ),
    )
    search = PoisonSearch(ranges)
    through = world.play(search)
    assert found(search) <= poisons
    assert not through & poisons


@given(spans, st.data(), st.integers())
def test_one_failure_alone_condemns_nobody(
    ranges: list[RootRange], data: st.DataObject, seed: int
) -> None:
    """Whatever fails by chance, in trials too, but never twice for one message alone."""
    everyone, rng = roots(ranges), random.Random(seed)
    poisons = data.draw(st.sets(st.sampled_from(sorted(everyone)), max_size=4))
    unlucky: set[int] = set()

    def fails(tried: set[int], action: Action) -> bool:
        if tried & poisons:
            return True
        if action.purpose is Purpose.TRIAL:
            if tried <= unlucky:
                return False
            unlucky.update(tried)
        return rng.random() < 0.3

    search = PoisonSearch(ranges)
    through = World(ranges, fails).play(search)
    assert found(search) <= poisons
    assert not through & poisons


def test_three_accidents_condemn_nobody() -> None:
    """A batch that fails twice, and a trial of the last one to suspect: it runs with the others."""
    accidents = [True, *[False] * 5, True]  # the second time, control and halving, and the trial
    ranges = [RootRange(0, 10)]
    world = World(ranges, lambda tried, action: bool(accidents) and accidents.pop(0))
    search = PoisonSearch(ranges)
    assert world.play(search) == world.everyone
    assert search.poisons == ()
    trials = [action for action in world.actions if action.purpose is Purpose.TRIAL]
    assert [action.messages for action in trials] == [1, 1]


def test_accident_costs_one_whole_retry() -> None:
    """Most failures are of the world: nothing is left out at once."""
    world = World([RootRange(0, 10)], lambda tried, action: False)
    search = PoisonSearch([RootRange(0, 10)])
    assert world.play(search) == world.everyone
    assert [(action.purpose, action.messages) for action in world.actions] == [(Purpose.BATCH, 10)]


def test_world_that_fails_without_messages_is_not_their_fault() -> None:
    """If even an empty probe fails, the search ends without blaming anyone."""
    world = World([RootRange(0, 10)], lambda tried, action: True)
    search = PoisonSearch([RootRange(0, 10)])
    world.play(search)
    assert search.hopeless
    assert search.poisons == ()
    assert len(world.actions) == 2


def test_world_that_goes_away_in_a_trial_condemns_nobody() -> None:
    """After a failed trial an empty probe must pass, or the trial says nothing."""
    gone: list[bool] = []

    def fails(tried: set[int], action: Action) -> bool:
        gone.extend([True] * (action.purpose is Purpose.TRIAL))
        return bool(gone) or 3 in tried

    world, search = World([RootRange(0, 10)], fails), PoisonSearch([RootRange(0, 10)])
    world.play(search)
    assert search.hopeless
    assert search.poisons == ()


def test_bolt_that_bears_no_message_is_not_their_fault() -> None:
    """If the first ones all fail and none ever passed, it is the bolt."""
    ranges = [RootRange(0, 1000)]
    search, world = PoisonSearch(ranges, max_poisons=4), poisoned(ranges, set(range(1000)))
    world.play(search)
    assert search.hopeless
    assert len(world.actions) <= bound(1000, 4)


def test_more_poisons_than_the_bound_leave_the_rest_for_later() -> None:
    """What lies behind the last one looked for is left out; what passed before it goes through."""
    ranges, poisons = [RootRange(0, 1000)], set(range(10, 1000, 10))
    search, world = PoisonSearch(ranges, max_poisons=3), poisoned(ranges, poisons)
    assert world.play(search) == set(range(30)) - {10, 20}
    assert found(search) == {10, 20, 30}


def test_what_fails_only_together_goes_through_in_parts() -> None:
    """Messages that are too much together, not apart, come back in smaller batches."""
    ranges = [RootRange(0, 100)]
    world = World(ranges, lambda tried, action: len(tried) > 60)
    search = PoisonSearch(ranges)
    assert world.play(search) == set(range(50))
    assert search.poisons == ()


def test_hung_batch_is_not_repeated_whole() -> None:
    """What ran out of time would only cost as long again."""
    search = PoisonSearch([RootRange(0, 10)], hung=True)
    assert (search.action.purpose, search.action.messages) == (Purpose.PROBE, 0)


def test_hung_trial_is_told_from_one_that_ended_its_process() -> None:
    """What a poison did is what it did in its trial."""
    search = PoisonSearch([RootRange(7, 1)], hung=True)
    search.passed()
    assert search.action.purpose is Purpose.TRIAL
    search.failed(hung=False)
    search.passed()
    assert (search.action.purpose, search.poisons) == (Purpose.TRIAL, ())
    search.failed(hung=True)
    assert search.poisons == (Poison(7, hung=True),)
    assert search.action.messages == 0


class TestTimeLimits:
    def test_trial_and_control_have_the_whole_timeout(self) -> None:
        """No message is condemned for being slow."""
        limits = TimeLimits(600, 1000, good_secs=1.0)
        assert limits.of(Action(purpose=Purpose.TRIAL, messages=1)) == 600
        assert limits.of(Action(purpose=Purpose.PROBE, messages=0)) == 600

    def test_probes_get_their_share_or_what_is_known_to_do(self) -> None:
        """All halves together take hardly more than one time-out; far less if that is known."""
        unknown, known = TimeLimits(600, 1024, good_secs=0.0), TimeLimits(600, 1024, good_secs=1.0)
        halves = [Action(purpose=Purpose.PROBE, messages=2**n) for n in range(10)]
        assert sum(map(unknown.of, halves)) < 600 + 10 * 3.1
        assert max(map(known.of, halves)) == 7.0
        known.passed(Action(purpose=Purpose.PROBE, messages=0), 2.0)
        assert max(map(known.of, halves)) == 11.0

    def test_mistakes_widen_them_up_to_the_timeout(self) -> None:
        """A limit that led to an innocent message was too short."""
        limits, action = TimeLimits(100, 10, 1.0), Action(purpose=Purpose.PROBE, messages=5)
        assert [limits.of(action, mistakes) for mistakes in range(3)] == [7.0, 28.0, 100]
