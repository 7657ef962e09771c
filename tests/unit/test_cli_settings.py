"""The settings of ``sparkstorm run``: those that are given, and friendly limits for a trial."""

import pytest

from sparkstorm.cli.settings import run_settings
from sparkstorm.config import Config
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.verdicts import Failure, Reason


def secs_to_the_letter(config: Config) -> float:
    """Return how long a message that always fails waits until it is given up."""
    policy, failure = RetryPolicy.of(config), Failure(reason=Reason.ERROR)
    waited, attempt = 0.0, 1
    while (wait := policy.wait(failure, attempt=attempt, key=attempt)) is not None:
        waited, attempt = waited + wait, attempt + 1
    return waited


def test_a_trial_shows_its_first_dead_letter_within_seconds() -> None:
    """Without a checkpoint nobody waits half an hour for a mistake."""
    assert secs_to_the_letter(run_settings([], checkpoint=None)) < 5


def test_a_run_with_a_checkpoint_bears_an_outage() -> None:
    """Its messages are worth the wait: the limits are those of ``submit``."""
    assert run_settings([], checkpoint="/data/words") == Config()


@pytest.mark.parametrize("key", ["max_retries", "topology.max.retries"])
@pytest.mark.parametrize("value", ["16", "0", "none"])
def test_a_given_limit_counts(key: str, value: str) -> None:
    """Also if it is the default of ``submit``."""
    config = run_settings([f"{key}={value}"], checkpoint=None)
    assert config.max_retries == (None if value == "none" else int(value))


def test_other_settings_stay_as_they_are_given() -> None:
    """The limit comes beside them."""
    config = run_settings(["user.limit=3", "acker_executors=2"], checkpoint=None)
    assert (config.user, config.acker_executors) == ({"limit": "3"}, 2)
    assert config.max_retries == 3
