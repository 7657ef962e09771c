"""Random topologies under random faults: no verdict and no state but what really happened."""

import pytest

from sparkstorm.testing import Faults, simulate
from sparkstorm.testing.simulation import Outcome
from tests.tools.random_topology import random_topology
from tests.tools.truth import Truth

PER_TEST = 10

RUGGED = Faults(
    crash=0.03,
    lost_job=0.1,
    repeated_task=0.1,
    lost_packet=0.02,
    doubled_packet=0.02,
    late_outcome=0.2,
)


def play(seed: int, faults: Faults | None = None) -> Outcome:
    """Draw a topology and a schedule from one seed, and run them."""
    drawn = random_topology(seed)
    return simulate(
        drawn.topology,
        seed=seed,
        faults=faults,
        config=drawn.config,
        partitions=drawn.partitions,
        taps=(),
        reproducible=drawn.reproducible,
        observer=Truth(drawn),
    )


@pytest.mark.parametrize("first", range(0, 100, PER_TEST))
def test_random_topologies(first: int) -> None:
    """Under the usual faults; ``python scripts/simulate.py`` tries more of them."""
    for seed in range(first, first + PER_TEST):
        play(seed)


@pytest.mark.parametrize("first", range(1000, 1030, PER_TEST))
def test_random_topologies_in_a_rugged_world(first: int) -> None:
    """Under many more faults than any cluster has."""
    for seed in range(first, first + PER_TEST):
        play(seed, RUGGED)


def test_random_topologies_whose_joins_share_their_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the results of large windows do: two roots make a grove here."""
    monkeypatch.setattr("sparkstorm.tasks.dispatch.MANY_ROOTS", 2)
    for seed in range(4000, 4000 + 2 * PER_TEST):
        play(seed, RUGGED if seed % 2 else None)


def test_without_faults_nothing_is_lost() -> None:
    """What fails then was failed by a bolt, or forgotten; no driver died."""
    for seed in range(2000, 2015):
        outcome = play(seed, Faults.none())
        assert "lost" not in outcome.failures
        assert not outcome.faults


def test_every_fault_strikes_and_every_verdict_is_given() -> None:
    """The simulation would be worth nothing if its faults never came."""
    outcomes = [play(seed, RUGGED) for seed in range(3000, 3015)]
    struck = {fault for outcome in outcomes for fault in outcome.faults}
    reasons = {reason for outcome in outcomes for reason in outcome.failures}
    assert struck == {name for name in Faults.__slots__ if name != "processes"}
    assert reasons == {"failed", "error", "timeout", "lost"}
    assert any(outcome.given_up for outcome in outcomes)


def test_a_seed_repeats_itself() -> None:
    """The same seed, the same story, word for word; another one, another story."""
    first, again, other = play(7, RUGGED), play(7, RUGGED), play(8, RUGGED)
    assert first.trace == again.trace
    assert (first.acked, first.state) == (again.acked, again.state)
    assert first.trace != other.trace
